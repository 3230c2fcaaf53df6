"""Coming over from another system, and going back: what every take-over of a foreign database needs.

`foreign` opens it, `releases` knows whether it can be read, `remainders` say what can't come over, and
`progress` tells who waits. What the tables mean is known to the package that they come to.
"""
