"""Servers that go to another host.

`cold.py`: shut down here, started there. `expecting.py` prepares for one that comes while it runs, `live.py`
sends it: `migration_job.py` watches libvirt at that, `destination_xml.py` says what the guest is to be there.
`evacuation.py` is about servers of dead hosts. `peer.py` is the other host's libvirt, through which files are
copied (`copying.py`). What hosts tell each other is in `parcel.py`, and whether a server may run here in
`whereabouts.py`.
"""
