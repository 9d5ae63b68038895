"""Files at the gateway: storing, reading and replacing them in bounded memory."""
