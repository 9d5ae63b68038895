"""Transfers: copies files between local disks, object stores, SFTP servers, web servers and the grid."""
