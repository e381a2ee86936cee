"""All allowed differences between our driver and the C driver 1.53 of the wheel, with their reasons."""

# Cases of the test vectors that the C driver handles differently from ours, with the behaviour of the C driver.
MALFORMED = {
    "r-data-frame-length-below-header": "a frame shorter than its header cannot be delivered; C delivers it",
    "r-setup-active-before-initial": "the join position would be negative; C makes the image",
    "r-setup-frame-length-1000": "a SETUP longer than its datagram; C accepts it, an older 1.53 did not",
    "s-sm-position-far-ahead": "1.53.0 accepts positions 1.5 terms ahead; the snapshot of the wheel 0.5 terms",
    "n-valid-ip6": "C compares only four bytes of an address, so it confuses ::1 with the wildcard address",
    "n-entry-header-only": "C reads the address from the bytes that an earlier datagram left in the buffer",
    "n-name-length-negative": "C 1.52 and 1.53 end with a segmentation fault",
    "n-second-entry-cut": "C reads the second entry from the bytes that an earlier datagram left in the buffer",
    "n-second-entry-name-overlaps": "C reads beyond the end of the datagram",
}


def _once_or_twice(theirs, ours):
    return ours <= theirs <= 2 * ours


# Allowed differences after a step: name of an observation, check, and reason.
OBSERVED = {
    # If a frame does not fit below the sender limit, the sender sends the frames before it, and the C driver counts a
    # stall. In the next duty cycle, the C driver counts the same stall again, because frames were sent after the first
    # count. Ours counts each stall once.
    "snd-bpe": _once_or_twice,
}


def parting(theirs, ours):
    """Returns the names of observations that differ although they must be equal."""
    return {
        name
        for name in theirs.keys() | ours.keys()
        if theirs.get(name) != ours.get(name) and not (name in OBSERVED and OBSERVED[name](theirs[name], ours[name]))
    }


def cubic_window(theirs, maximum):
    """Returns the window of our driver that corresponds to a window of the C driver.

    In TCP mode the window of the C driver grows beyond the maximum of the image and stays there. The excess depends on
    the time since the last growth. The window of our driver never exceeds the maximum."""
    return min(theirs, maximum)


def assert_resent(theirs, ours, sent):
    """Checks the response to a NAK for bytes of which a part was not sent yet.

    Our driver resends only the bytes that were sent. The C driver resends all appended bytes.
    """
    assert ours["Retransmitted bytes"] == sent, (ours, sent)
    assert theirs["Retransmitted bytes"] > sent, (theirs, sent)
    assert ours["Retransmits sent"] == theirs["Retransmits sent"] == 1


def assert_goes_astray(theirs, ours, position, session):
    """Checks the positions of an unreliable stream after a heartbeat with a position within a frame.

    Our driver stays at that position. The C driver reads the bytes there as a header, and moves beyond all received
    bytes.
    """
    received, most = f"rcv-pos of {session}", f"rcv-hwm of {session}"
    assert ours[received] == position < ours[most], ours
    assert theirs[received] > theirs[most] == ours[most], theirs
