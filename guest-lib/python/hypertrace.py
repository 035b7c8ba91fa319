# SPDX-License-Identifier: MIT
"""Emit trace events from a virtual machine to its host.

    import hypertrace

    failed = hypertrace.Event("disk.error:err x64 sector; text what")
    failed(4711, "short read")

The host chooses the events that it records. Without a device, or if the host
does not want an event, a call emits nothing and does not fail.
"""

import ctypes
import errno
import os
from array import array

__all__ = ["Event", "host_stats", "status"]

_UNSIGNED, _SIGNED, _FLOAT, _MEMORY = 1, 2, 3, 4    # enum ht_value_type


class _Number(ctypes.Union):
    _fields_ = [("u", ctypes.c_uint64), ("s", ctypes.c_int64),
                ("f", ctypes.c_double), ("p", ctypes.c_char_p)]


class _Value(ctypes.Structure):
    """struct ht_value"""

    _fields_ = [("number", _Number), ("size", ctypes.c_uint32),
                ("type", ctypes.c_uint32)]

    def __init__(self, value):
        if isinstance(value, float):
            super().__init__(_Number(f=value), 0, _FLOAT)
        elif isinstance(value, int):
            # ctypes would cut off higher bits silently
            if not -2**63 <= value < 2**64:
                raise ValueError(f"{value} does not fit in 64 bits")
            if value < 0:
                super().__init__(_Number(s=value), 0, _SIGNED)
            else:
                super().__init__(_Number(u=value), 0, _UNSIGNED)
        else:
            if isinstance(value, str):
                value = value.encode("utf-8", "surrogateescape")
            elif isinstance(value, array):
                value = value.tobytes()
            super().__init__(_Number(p=value), len(value), _MEMORY)


class _Exit(ctypes.Structure):
    """struct ht_host_exit"""

    _fields_ = [("reason", ctypes.c_uint32), ("name", ctypes.c_char * 20),
                ("count", ctypes.c_uint64), ("ns", ctypes.c_uint64)]


class _HostStats(ctypes.Structure):
    """struct ht_host_stats"""

    _fields_ = [(name, ctypes.c_uint64) for name in ("seq", "from_ns", "to_ns")] + [
        ("vcpu", ctypes.c_int32), ("nr_exits", ctypes.c_uint32)] + [
        (name, ctypes.c_uint64) for name in (
            "guest_ns", "exits_ns", "vmm_ns", "preempted_ns", "woken_ns", "halted_ns",
            "waiting_ns", "unknown_ns", "machines_ns", "tasks_ns", "own_ns", "idle_ns",
            "other_exits", "other_exits_ns")] + [("exits", _Exit * 16)]


_library = ctypes.CDLL("libhypertrace.so.0")
_library.ht_event_parse.argtypes = [ctypes.c_char_p]
_library.ht_event_parse.restype = ctypes.c_void_p
_library.ht_event_is_on.argtypes = [ctypes.c_void_p]
_library.ht_event_is_on.restype = ctypes.c_bool
_library.ht_event_values.argtypes = [
    ctypes.c_void_p, ctypes.POINTER(_Value), ctypes.c_uint]
_library.ht_trace_status.argtypes = [ctypes.POINTER(ctypes.c_char_p)]
_library.ht_open.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]
_library.ht_close.argtypes = [ctypes.c_void_p]
_library.ht_host_stats.argtypes = [
    ctypes.c_void_p, ctypes.c_uint, ctypes.POINTER(_HostStats)]


class Event:
    """An event class, made from a description for ht_event_parse() (trace.h).

    A process can make at most 1,023 such classes, which are never freed: make
    each class once, not in a loop.
    """

    def __init__(self, description):
        self._class = _library.ht_event_parse(description.encode())
        if not self._class:
            raise ValueError(f"not a valid description, or more than 1,023 "
                             f"classes: {description!r}")

    def __bool__(self):
        """Return True if the host wants events of this class now."""
        return _library.ht_event_is_on(self._class)

    def __call__(self, *values):
        """Emit an event: one value for each field.

        A value is an int, a float, str or bytes for text, and bytes or
        array.array for arrays and sequences. If the class is off, the values
        are neither converted nor checked.

        Returns True if the event was committed, and False if it was discarded
        or the host does not want it. If the class is on and the values do not
        fit the fields, raises ValueError, or TypeError for other Python types.
        """
        if not _library.ht_event_is_on(self._class):
            return False
        packed = (_Value * len(values))(*map(_Value, values))
        committed = _library.ht_event_values(self._class, packed, len(values))
        if committed < 0:
            raise ValueError(f"the values do not fit the fields: {values!r}")
        return committed == 1


def status():
    """Return (state, text).

    The state is one of enum ht_trace_state (trace.h): 0 if the host wants events of this process.
    The text describes the state.
    """
    why = ctypes.c_char_p()
    state = _library.ht_trace_status(ctypes.byref(why))
    return state, (why.value or b"").decode()


def host_stats(vcpu=0):
    """Return the host's statistics of a vCPU of this machine; None if the host publishes none.

    Raises OSError if no device can be opened, or if the statistics cannot be read.
    The result has the members of struct ht_host_stats by name, except "seq" and "nr_exits";
    "exits" is a list of (name, number of the reason, count, ns).
    """
    device, stats = ctypes.c_void_p(), _HostStats()
    error = _library.ht_open(None, ctypes.byref(device))
    if error:
        raise OSError(-error, os.strerror(-error))
    error = _library.ht_host_stats(device, vcpu, stats)
    _library.ht_close(device)
    if error == -errno.ENODATA:
        return None
    if error:
        raise OSError(-error, os.strerror(-error))
    result = {name: getattr(stats, name) for name, _ in stats._fields_[1:]}
    del result["nr_exits"]
    result["exits"] = [(e.name.decode(), e.reason, e.count, e.ns)
                       for e in stats.exits[:stats.nr_exits]]
    return result
