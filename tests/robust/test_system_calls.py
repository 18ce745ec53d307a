"""The filter of calls is the program it always was, and numbers of calls are those that libseccomp knows."""

import ctypes
from ctypes.util import find_library
from hashlib import sha256

import pytest

from discreet.robust.sandbox import linux
from discreet.robust.sandbox.seccomp import call_filter, clone_filter

PROGRAMS = {
    "x86_64": (
        "d4804b3c3ef93938a0803e50c0bf1ac249e912dbbfe82bf10600b3cf9b5efe95",
        "65ed9c524ad8b545e6cea3088d3311c8f38df2fd25bf18137c07d1fe19f7520f",
        "14abefb68d607e18393d628517fe2dfef628cfc0200e2f2c046b78a585e005e7",
    ),
    "aarch64": (
        "2a35de7f44ec69c44de3b5dec11f5096148469d022a178f8b079168992e34888",
        "edf35e20608ba3945e0dd6dc294c0f507970afe4b7b6c719000c593e9fd72c2d",
        "d26db4113e333052ffdb6f4793d5407423bbc1d154e198a1ba7bda05fbfb85f5",
    ),
}
"""Digests of the programs: whoever changes what a function may do changes them, on purpose."""


@pytest.mark.parametrize("machine", linux.AUDIT_ARCH)
def test_the_kernel_is_given_these_programs(machine: str) -> None:
    programs = call_filter(machine), clone_filter(machine, True), clone_filter(machine, False)
    assert tuple(sha256(b"".join(program)).hexdigest() for program in programs) == PROGRAMS[machine]


@pytest.mark.parametrize("machine", linux.AUDIT_ARCH)
def test_calls_have_the_numbers_that_libseccomp_knows(machine: str) -> None:
    library = find_library("seccomp")
    if library is None:
        pytest.skip("libseccomp is not on this machine")
    resolve = ctypes.CDLL(library).seccomp_syscall_resolve_name_arch
    resolve.argtypes = (ctypes.c_uint32, ctypes.c_char_p)
    found = {call: resolve(linux.AUDIT_ARCH[machine], call.encode()) for call in linux.CALLS}
    # It counts downwards from −1 where a machine has no such call.
    known = {call: number if number >= 0 else None for call, number in found.items()}
    assert known == {call: linux.number(call, machine) for call in linux.CALLS}
