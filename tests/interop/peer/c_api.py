"""The functions of the real C client and driver that the peers call, declared for ctypes.

This module runs in the environment of the `pyaeron` wheel, never in the product's environment. It declares every
function before the first call. Without a declaration, ctypes would read results as 32-bit integers and truncate
positions and pointers."""

import ctypes as C
import importlib.util

P, PP = C.c_void_p, C.POINTER(C.c_void_p)
S, I32, I64, U64, SIZE, INT, BOOL = C.c_char_p, C.c_int32, C.c_int64, C.c_uint64, C.c_size_t, C.c_int, C.c_bool

FRAGMENT_HANDLER = C.CFUNCTYPE(None, P, P, SIZE, P)
IMAGE_HANDLER = C.CFUNCTYPE(None, P, P, P)
ERROR_HANDLER = C.CFUNCTYPE(None, P, INT, S)
PUBLICATION_ERROR_HANDLER = C.CFUNCTYPE(None, P, P)
COUNTER_HANDLER = C.CFUNCTYPE(None, P, P, I64, I32)
CLOSE_HANDLER = C.CFUNCTYPE(None, P)
EACH_COUNTER = C.CFUNCTYPE(None, I64, I32, I32, C.POINTER(C.c_uint8), SIZE, C.POINTER(C.c_char), SIZE, P)


class BufferClaim(C.Structure):
    _fields_ = [("frame", P), ("data", P), ("length", SIZE)]


class IoVector(C.Structure):
    _fields_ = [("base", P), ("length", SIZE)]


class HeaderValues(C.Structure):
    _pack_ = 4
    _fields_ = [
        ("frame_length", I32),
        ("version", C.c_int8),
        ("flags", C.c_uint8),
        ("type", C.c_int16),
        ("term_offset", I32),
        ("session", I32),
        ("stream", I32),
        ("term", I32),
        ("reserved_value", I64),
        ("initial_term", I32),
        ("position_bits_to_shift", SIZE),
    ]


class PublicationConstants(C.Structure):
    _fields_ = [
        ("channel", S),
        ("original", I64),
        ("registration", I64),
        ("max_position", I64),
        ("position_bits_to_shift", SIZE),
        ("term_length", SIZE),
        ("max_message", SIZE),
        ("max_payload", SIZE),
        ("stream", I32),
        ("session", I32),
        ("initial_term", I32),
        ("limit_counter", I32),
        ("status_counter", I32),
    ]


class ImageConstants(C.Structure):
    _fields_ = [
        ("subscription", P),
        ("source", S),
        ("correlation", I64),
        ("join", I64),
        ("position_bits_to_shift", SIZE),
        ("term_length", SIZE),
        ("mtu", SIZE),
        ("session", I32),
        ("initial_term", I32),
        ("position_counter", I32),
    ]


class PublicationErrorValues(C.Structure):
    _pack_ = 4
    _fields_ = [
        ("registration", I64),
        ("destination", I64),
        ("session", I32),
        ("stream", I32),
        ("receiver", I64),
        ("group_tag", I64),
        ("address_type", C.c_int16),
        ("port", C.c_uint16),
        ("address", C.c_uint8 * 16),
        ("code", I32),
        ("text_length", I32),
        ("text", C.c_char * 1),
    ]


def _destination_functions(kind):
    return {
        f"aeron_{kind}_async_add_destination": (INT, PP, P, P, S),
        f"aeron_{kind}_async_remove_destination": (INT, PP, P, P, S),
        f"aeron_{kind}_async_destination_poll": (INT, P),
    }


def _publication_functions(kind):
    prefix = f"aeron_{kind}"
    return {
        f"{prefix}_offer": (I64, P, P, SIZE, P, P),
        f"{prefix}_offerv": (I64, P, C.POINTER(IoVector), SIZE, P, P),
        f"{prefix}_try_claim": (I64, P, SIZE, C.POINTER(BufferClaim)),
        f"{prefix}_constants": (INT, P, C.POINTER(PublicationConstants)),
        f"{prefix}_is_connected": (BOOL, P),
        f"{prefix}_is_closed": (BOOL, P),
        f"{prefix}_position": (I64, P),
        f"{prefix}_position_limit": (I64, P),
        f"{prefix}_close": (INT, P, CLOSE_HANDLER, P),
        f"aeron_async_add_{kind}": (INT, PP, P, S, I32),
        f"aeron_async_add_{kind}_poll": (INT, PP, P),
        **_destination_functions(kind),
    }


_FUNCTIONS = {
    "aeron_version_text": (S,),
    "aeron_errmsg": (S,),
    "aeron_errcode": (INT,),
    "aeron_context_init": (INT, PP),
    "aeron_context_close": (INT, P),
    "aeron_context_set_dir": (INT, P, S),
    "aeron_context_set_client_name": (INT, P, S),
    "aeron_context_set_driver_timeout_ms": (INT, P, U64),
    "aeron_context_set_error_handler": (INT, P, ERROR_HANDLER, P),
    "aeron_context_set_publication_error_frame_handler": (INT, P, PUBLICATION_ERROR_HANDLER, P),
    "aeron_context_set_on_available_counter": (INT, P, COUNTER_HANDLER, P),
    "aeron_context_set_on_unavailable_counter": (INT, P, COUNTER_HANDLER, P),
    "aeron_context_set_on_close_client": (INT, P, CLOSE_HANDLER, P),
    "aeron_init": (INT, PP, P),
    "aeron_start": (INT, P),
    "aeron_close": (INT, P),
    "aeron_is_closed": (BOOL, P),
    "aeron_client_id": (I64, P),
    "aeron_async_add_subscription": (INT, PP, P, S, I32, IMAGE_HANDLER, P, IMAGE_HANDLER, P),
    "aeron_async_add_subscription_poll": (INT, PP, P),
    "aeron_async_add_subscription_get_registration_id": (I64, P),
    "aeron_async_add_counter": (INT, PP, P, I32, S, SIZE, S, SIZE),
    "aeron_async_add_static_counter": (INT, PP, P, I32, S, SIZE, S, SIZE, I64),
    "aeron_async_add_counter_poll": (INT, PP, P),
    "aeron_async_add_counter_get_registration_id": (I64, P),
    "aeron_async_next_session_id": (INT, PP, P, I32),
    "aeron_async_next_session_id_poll": (INT, C.POINTER(I32), P),
    "aeron_counter_addr": (C.POINTER(I64), P),
    "aeron_counter_close": (INT, P, CLOSE_HANDLER, P),
    "aeron_exclusive_publication_revoke": (INT, P, CLOSE_HANDLER, P),
    "aeron_exclusive_publication_append_padding": (I64, P, SIZE),
    "aeron_buffer_claim_commit": (INT, C.POINTER(BufferClaim)),
    "aeron_buffer_claim_abort": (INT, C.POINTER(BufferClaim)),
    "aeron_subscription_poll": (INT, P, P, P, SIZE),
    "aeron_subscription_close": (INT, P, CLOSE_HANDLER, P),
    "aeron_subscription_is_connected": (BOOL, P),
    "aeron_subscription_is_closed": (BOOL, P),
    "aeron_subscription_image_count": (INT, P),
    "aeron_subscription_image_at_index": (P, P, SIZE),
    "aeron_subscription_image_release": (INT, P, P),
    "aeron_image_constants": (INT, P, C.POINTER(ImageConstants)),
    "aeron_image_position": (I64, P),
    "aeron_image_is_closed": (BOOL, P),
    "aeron_image_is_end_of_stream": (BOOL, P),
    "aeron_image_is_publication_revoked": (BOOL, P),
    "aeron_image_reject": (INT, P, S),
    "aeron_fragment_assembler_create": (INT, PP, FRAGMENT_HANDLER, P),
    "aeron_fragment_assembler_delete": (INT, P),
    "aeron_header_values": (INT, P, C.POINTER(HeaderValues)),
    "aeron_header_position": (I64, P),
    "aeron_counters_reader": (P, P),
    "aeron_counters_reader_foreach_counter": (None, P, EACH_COUNTER, P),
    "aeron_counters_reader_counter_registration_id": (INT, P, I32, C.POINTER(I64)),
    "aeron_counters_reader_counter_owner_id": (INT, P, I32, C.POINTER(I64)),
    "aeron_driver_context_init": (INT, PP),
    "aeron_driver_context_close": (INT, P),
    "aeron_driver_context_set_dir": (INT, P, S),
    "aeron_driver_init": (INT, PP, P),
    "aeron_driver_start": (INT, P, BOOL),
    "aeron_driver_main_do_work": (INT, P),
    "aeron_driver_main_idle_strategy": (None, P, INT),
    "aeron_driver_close": (INT, P),
    **_destination_functions("subscription"),
    **_publication_functions("publication"),
    **_publication_functions("exclusive_publication"),
}


class AeronError(Exception):
    """A call of the C library failed. `code` is negative if the driver refused the request, or if the error is one of
    Aeron's client."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def load():
    """Returns the library with every function declared."""
    library = C.CDLL(importlib.util.find_spec("pyaeron._pyaeron").origin)
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def check(library, result):
    """Returns the result of a call. If the call failed, raises the library's last error of this thread."""
    if result < 0:
        raise AeronError(library.aeron_errcode(), library.aeron_errmsg().decode())
    return result
