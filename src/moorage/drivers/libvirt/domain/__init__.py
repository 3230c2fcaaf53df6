"""A guest as libvirt takes it, without any libvirt: what flavors and images ask for (`guest_options.py`), the
guest described (`description.py`), that as XML (`domain_xml.py`), our mark (`mark.py`), and what the XML of
running domains says (`live_xml.py`)."""
