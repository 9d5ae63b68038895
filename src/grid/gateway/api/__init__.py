"""The gateway's web API described for programs, as an OpenAPI document. Pure."""
