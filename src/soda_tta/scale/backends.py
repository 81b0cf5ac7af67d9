"""The engines by name: processes of this machine, Dask, Ray. To add one, add it here."""

from __future__ import annotations

from soda_tta.errors import SodaError
from soda_tta.scale.backend import Backend
from soda_tta.scale.dask_cluster import DaskCluster
from soda_tta.scale.processes import Processes
from soda_tta.scale.ray_cluster import RayCluster

BACKENDS = ("local", "dask", "ray")


def find_backend(name: str, address: str | None = None, jobs: int | None = None) -> Backend:
    """The engine of this name; use it in a `with` statement, which leaves it at the end.

    Parameters
    ----------
    name : {"local", "dask", "ray"}
    address : str, optional
        Of the scheduler, such as "tcp://host:8786" (Dask) or "host:6379" (Ray). Default: an
        engine of its own on this machine.
    jobs : int, optional
        Processes on this machine, if there is no address. Default: 1.
    """
    if name not in BACKENDS:
        raise SodaError(f"backend={name!r} is not valid; use one of {', '.join(BACKENDS)}.")
    if address is not None and jobs is not None:
        raise SodaError("jobs= is for this machine; the workers at address= are as many as run.")
    if name == "dask":
        return DaskCluster(address, jobs or 1)
    if name == "ray":
        return RayCluster(address, jobs or 1)
    if address is not None:
        raise SodaError('address= is for backend="dask" and backend="ray".')
    return Processes(jobs or 1)
