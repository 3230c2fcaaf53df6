"""Makes a small guest from Debian's packages: `make guest-image`. See README.md.

`packages` gets what it is made of, `initramfs` packs its files, `disk` makes it boot by itself; `init` and
`udhcpc` are what runs in it. Needs nothing but Python: it runs before anything is installed.
"""
