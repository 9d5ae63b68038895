"""Networks of campaigns: hosts in namespaces, lines with delay and loss, limited processors, media, and many machines."""
