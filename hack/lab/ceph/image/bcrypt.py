"""Debian trixie's python3-bcrypt is a PyO3 module and refuses to load in the subinterpreters of ceph-mgr, and with it every
module of the mgr, `volumes` among them (18.2.7). mgr_util imports it for one function that hashes passwords of users of the
dashboard, which is not in this image. The mgr's own folder comes first in its path."""


def gensalt(rounds=12, prefix=b"2b"):
    raise NotImplementedError("this ceph-mgr has no bcrypt")


def hashpw(password, salt):
    raise NotImplementedError("this ceph-mgr has no bcrypt")
