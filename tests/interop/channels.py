"""Channels for tests, each with a separate port."""

from ports import free_port


def unicast(parameters=""):
    return f"aeron:udp?endpoint=127.0.0.1:{free_port()}{parameters}"


def unicast_6(parameters=""):
    return f"aeron:udp?endpoint=[::1]:{free_port('::1')}{parameters}"


def multicast(parameters=""):
    return f"aeron:udp?endpoint=224.20.30.41:{free_port()}|interface=localhost{parameters}"


def dynamic(parameters=""):
    """Returns two channels of a dynamic multi-destination stream: for the publication and for each subscription."""
    control = f"aeron:udp?control=127.0.0.1:{free_port()}|control-mode=dynamic"
    return control + parameters, f"{control}|endpoint=127.0.0.1:0"
