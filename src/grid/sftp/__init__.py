"""The SFTP door: files and directories of a grid for sftp, scp, sshfs and other programs that speak SFTP."""
