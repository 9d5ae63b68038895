"""Networks of campaigns: hosts in namespaces, links with delay and loss, processor limits, media, and clusters."""
