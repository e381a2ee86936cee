"""Where our driver knowingly does something else than the C driver 1.53 of the wheel, and why; nowhere else may it."""

# Malformed datagrams that the C driver takes and ours does not, by the name of the case.
MALFORMED = {
    "r-data-frame-length-below-header": "a frame shorter than its header cannot be delivered; C delivers it",
    "r-setup-active-before-initial": "the join position would be negative; C makes the image",
    "r-setup-frame-length-1000": "a SETUP longer than its datagram; the wheel takes it, an older 1.53 did not",
    "n-valid-ip6": "C looks at four bytes of an address and takes ::1 for the wildcard: another neighbour",
    "n-entry-header-only": "C reads the address from what an earlier datagram left in its buffer",
    "n-name-length-negative": "C 1.52 and 1.53 end with a segmentation fault",
    "n-second-entry-cut": "C reads the second entry from what an earlier datagram left in its buffer",
    "n-second-entry-name-overlaps": "C reads beyond the end of the datagram",
}


def _once_or_twice(theirs, ours):
    return ours <= theirs <= 2 * ours


# What may differ after a step: the name of an observation, how, and why.
OBSERVED = {
    # The C driver counts a stall when it finds a frame that does not fit behind others which it sends, and once more in
    # the next pass, since something was sent. Ours counts once per stall, whatever the pass sent that ran into it.
    "snd-bpe": _once_or_twice,
}


def parting(theirs, ours):
    """The names of what differs and may not."""
    return {
        name
        for name in theirs.keys() | ours.keys()
        if theirs.get(name) != ours.get(name) and not (name in OBSERVED and OBSERVED[name](theirs[name], ours[name]))
    }


def cubic_window(theirs, maximum):
    """What ours shows where the C driver shows a window.

    In its TCP mode the C driver's window grows past the maximum of the image, by as much as the time since the last
    growth allows, before it stays. Ours never promises more than the maximum.
    """
    return min(theirs, maximum)


def assert_resent(theirs, ours, sent):
    """A NAK for more than was sent: ours resends what was sent, the C driver all that its publisher appended."""
    assert ours["Retransmitted bytes"] == sent, (ours, sent)
    assert theirs["Retransmitted bytes"] > sent, (theirs, sent)
    assert ours["Retransmits sent"] == theirs["Retransmits sent"] == 1


def assert_goes_astray(theirs, ours, position, session):
    """A source says that a frame begins within one of an unreliable stream: ours stays there, the C driver takes what
    it finds for a header, and goes beyond everything that came.
    """
    received, most = f"rcv-pos of {session}", f"rcv-hwm of {session}"
    assert ours[received] == position < ours[most], ours
    assert theirs[received] > theirs[most] == ours[most], theirs
