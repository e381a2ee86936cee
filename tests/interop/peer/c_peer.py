"""Runs the real C client, controlled by lines of text. `peers.py` describes the protocol."""

import ctypes as C
import time
from collections import deque

import c_api
from c_api import I32, I64, P, check, load
from serve import Publisher, Receiver, false_frames, serve

_ADD_TIMEOUT_S = 15


class _Publication(Publisher):
    """A concurrent or an exclusive publication. The functions of both kinds have the same arguments."""

    def __init__(self, library, exclusive, pointer):
        super().__init__(self._attempt)
        self._library, self.pointer = library, pointer
        self.prefix = "aeron_exclusive_publication" if exclusive else "aeron_publication"
        self._claim = c_api.BufferClaim()

    def call(self, name, *arguments):
        return getattr(self._library, f"{self.prefix}_{name}")(self.pointer, *arguments)

    def constants(self):
        constants = c_api.PublicationConstants()
        check(self._library, self.call("constants", constants))
        return {name: getattr(constants, name) for name, _ in constants._fields_ if name != "channel"}

    def state(self):
        return {
            "connected": self.call("is_connected"),
            "closed": self.call("is_closed"),
            "position": self.call("position"),
            "limit": self.call("position_limit"),
        }

    def hold(self, length):
        return {"result": self._result(self.call("try_claim", int(length), self._claim))}

    def finish(self, abort):
        if abort:
            check(self._library, self._library.aeron_buffer_claim_abort(self._claim))
        else:
            C.memmove(self._claim.data, self.take(self._claim.length), self._claim.length)
            check(self._library, self._library.aeron_buffer_claim_commit(self._claim))

    def pad(self, length):
        return {"result": self._result(self.call("append_padding", int(length)))}

    def _attempt(self, how, payload):
        if how == "aborts":
            for _ in range(2):
                if (result := self._abort_claim(len(payload))) < 0:
                    return result
        if how in ("claim", "aborts"):
            result = self.call("try_claim", len(payload), self._claim)
            if result > 0:
                C.memmove(self._claim.data, payload, len(payload))
                check(self._library, self._library.aeron_buffer_claim_commit(self._claim))
        elif how == "parts":
            result = self._offer_parts(payload)
        else:
            result = self.call("offer", payload, len(payload), None, None)
        return self._result(result)

    def _abort_claim(self, length):
        """Claims, fills and aborts a message. Returns the result of the claim."""
        result = self._result(self.call("try_claim", length, self._claim))
        if result > 0:
            C.memmove(self._claim.data, false_frames(length), length)
            check(self._library, self._library.aeron_buffer_claim_abort(self._claim))
        return result

    def _offer_parts(self, payload):
        half = len(payload) // 2
        parts = [C.create_string_buffer(part, len(part)) for part in (payload[:half], payload[half:])]
        vectors = (c_api.IoVector * 2)(*((C.addressof(part), len(part)) for part in parts))
        return self.call("offerv", vectors, 2, None, None)

    def _result(self, result):
        """Returns `result`. Raises an error if it is -6, because then the call itself failed."""
        if result == -6:
            check(self._library, -1)
        return result


class _Subscription(Receiver):
    """A subscription with the fragment assembler of the C library."""

    prefix = "aeron_subscription"

    def __init__(self, library, pointer):
        super().__init__(self._poll_once)
        self._library, self.pointer = library, pointer
        self._handler = c_api.FRAGMENT_HANDLER(self._on_fragment)
        self._assembler = P()
        check(library, library.aeron_fragment_assembler_create(self._assembler, self._handler, None))
        self._assemble = C.cast(library.aeron_fragment_assembler_handler, P)

    def close(self):
        check(self._library, self._library.aeron_subscription_close(self.pointer, c_api.CLOSE_HANDLER(), None))
        check(self._library, self._library.aeron_fragment_assembler_delete(self._assembler))

    def state(self):
        return {
            "connected": self._library.aeron_subscription_is_connected(self.pointer),
            "closed": self._library.aeron_subscription_is_closed(self.pointer),
            "images": [self.image_state(image) for image in self._images()],
        }

    def reject(self, session, reason):
        for image in self._images():
            if self.image_state(image)["session"] == int(session):
                check(self._library, self._library.aeron_image_reject(image, reason.encode()))

    def image_state(self, image):
        return image_state(self._library, image)

    def _images(self):
        for index in range(self._library.aeron_subscription_image_count(self.pointer)):
            image = self._library.aeron_subscription_image_at_index(self.pointer, index)
            if image:
                yield image
                self._library.aeron_subscription_image_release(self.pointer, image)

    def _poll_once(self, limit):
        return check(
            self._library,
            self._library.aeron_subscription_poll(self.pointer, self._assemble, self._assembler, limit),
        )

    def _on_fragment(self, _, data, length, header):
        values = c_api.HeaderValues()
        self._library.aeron_header_values(header, values)
        self.on_message(values.session, self._library.aeron_header_position(header), C.string_at(data, length))


def image_state(library, image):
    constants = c_api.ImageConstants()
    check(library, library.aeron_image_constants(image, constants))
    state = {
        name: getattr(constants, name)
        for name in ("session", "correlation", "initial_term", "term_length", "mtu", "join", "position_counter")
    }
    return {
        **state,
        "source": constants.source.decode(),
        "position": library.aeron_image_position(image),
        "closed": library.aeron_image_is_closed(image),
        "end_of_stream": library.aeron_image_is_end_of_stream(image),
        "revoked": library.aeron_image_is_publication_revoked(image),
    }


class CPeer:
    """One client at a time, with its resources by registration id."""

    def __init__(self):
        self._library = load()
        self._client, self._context = None, None
        self._events = deque()
        self._callbacks = {
            "error_handler": c_api.ERROR_HANDLER(self._on_error),
            "publication_error_frame_handler": c_api.PUBLICATION_ERROR_HANDLER(self._on_publication_error),
            "on_available_counter": c_api.COUNTER_HANDLER(self._on_counter),
            "on_unavailable_counter": c_api.COUNTER_HANDLER(self._on_counter_gone),
            "on_close_client": c_api.CLOSE_HANDLER(lambda _: self._event("closed")),
        }
        self._on_image = c_api.IMAGE_HANDLER(self._on_image_came)
        self._on_image_gone = c_api.IMAGE_HANDLER(self._on_image_went)
        self._clear()

    def _clear(self):
        self._publications, self._subscriptions, self._counters = {}, {}, {}
        self._events.clear()

    def connect(self, dir, name="", driver_timeout_ms="10000"):
        library, context, client = self._library, P(), P()
        check(library, library.aeron_context_init(context))
        check(library, library.aeron_context_set_dir(context, dir.encode()))
        check(library, library.aeron_context_set_client_name(context, name.encode()))
        check(library, library.aeron_context_set_driver_timeout_ms(context, int(driver_timeout_ms)))
        for setting, callback in self._callbacks.items():
            check(library, getattr(library, f"aeron_context_set_{setting}")(context, callback, None))
        try:
            check(library, library.aeron_init(client, context))
        except c_api.AeronError:
            library.aeron_context_close(context)
            raise
        check(library, library.aeron_start(client))
        self._client, self._context = client, context
        return {"client": library.aeron_client_id(client)}

    def disconnect(self):
        if self._client:
            check(self._library, self._library.aeron_close(self._client))
            check(self._library, self._library.aeron_context_close(self._context))
            self._client = None
        self._clear()

    def closed(self):
        return {"closed": self._client is None or self._library.aeron_is_closed(self._client)}

    def add_publication(self, channel, stream, exclusive="false"):
        exclusive = exclusive == "true"
        kind = "exclusive_publication" if exclusive else "publication"
        pointer = self._added(kind, self._request(f"add_{kind}", channel.encode(), int(stream)))
        publication = _Publication(self._library, exclusive, pointer)
        constants = publication.constants()
        self._publications[str(constants["registration"])] = publication
        return constants

    def add_subscription(self, channel, stream):
        handlers = (self._on_image, None, self._on_image_gone, None)
        handle = self._request("add_subscription", channel.encode(), int(stream), *handlers)
        registration = self._library.aeron_async_add_subscription_get_registration_id(handle)
        pointer = self._added("subscription", handle)
        self._subscriptions[str(registration)] = _Subscription(self._library, pointer)
        return {"registration": registration}

    def publish(self, id, **values):
        return self._publications[id].publish(**values)

    def offer(self, id, **values):
        return self._publications[id].offer(**values)

    def hold(self, id, length):
        return self._publications[id].hold(length)

    def finish(self, id, abort="false"):
        return self._publications[id].finish(abort == "true")

    def pad(self, id, length):
        return self._publications[id].pad(length)

    def publication(self, id):
        return self._publications[id].state()

    def receive(self, id, **values):
        return self._subscriptions[id].receive(**values)

    def subscription(self, id):
        return self._subscriptions[id].state()

    def reject(self, id, session, reason):
        self._subscriptions[id].reject(session, reason)

    def add_destination(self, id, channel):
        self._change_destination("add", id, channel)

    def remove_destination(self, id, channel):
        self._change_destination("remove", id, channel)

    def _change_destination(self, change, id, channel):
        resource, handle = self._publications.get(id) or self._subscriptions[id], P()
        change = getattr(self._library, f"{resource.prefix}_async_{change}_destination")
        check(self._library, change(handle, self._client, resource.pointer, channel.encode()))
        poll = getattr(self._library, f"{resource.prefix}_async_destination_poll")
        self._await(lambda: poll(handle))

    def add_counter(self, type, label, key="", registration=""):
        key, label = bytes.fromhex(key), label.encode()
        arguments = (int(type), key, len(key), label, len(label))
        if registration:
            handle = self._request("add_static_counter", *arguments, int(registration))
        else:
            handle = self._request("add_counter", *arguments)
            registration = self._library.aeron_async_add_counter_get_registration_id(handle)
        pointer = self._added("counter", handle)
        self._counters[str(registration)] = pointer
        return {"registration": int(registration), "id": self._counter_id(int(registration), int(type))}

    def set_counter(self, id, value):
        self._library.aeron_counter_addr(self._counters[id])[0] = int(value)

    def counters(self):
        found = []
        reader = self._library.aeron_counters_reader(self._client)

        def each(value, id, type, key, key_length, label, label_length, _):
            registration, owner = I64(), I64()
            self._library.aeron_counters_reader_counter_registration_id(reader, id, registration)
            self._library.aeron_counters_reader_counter_owner_id(reader, id, owner)
            found.append(
                {
                    "id": id,
                    "type": type,
                    "label": label[:label_length].decode(),
                    "key": bytes(key[:key_length]).hex(),
                    "value": value,
                    "registration": registration.value,
                    "owner": owner.value,
                }
            )

        self._library.aeron_counters_reader_foreach_counter(reader, c_api.EACH_COUNTER(each), None)
        return {"counters": found}

    def next_session(self, stream):
        session, handle = I32(), P()
        check(self._library, self._library.aeron_async_next_session_id(handle, self._client, int(stream)))
        self._await(lambda: self._library.aeron_async_next_session_id_poll(session, handle))
        return {"session": session.value}

    def events(self):
        events = []
        while self._events:
            events.append(self._events.popleft())
        return {"events": events}

    def close(self, id, revoke="false"):
        none = c_api.CLOSE_HANDLER()
        if publication := self._publications.pop(id, None):
            check(self._library, publication.call("revoke" if revoke == "true" else "close", none, None))
        if subscription := self._subscriptions.pop(id, None):
            subscription.close()
        if counter := self._counters.pop(id, None):
            check(self._library, self._library.aeron_counter_close(counter, none, None))

    def _request(self, name, *arguments):
        handle = P()
        check(self._library, getattr(self._library, f"aeron_async_{name}")(handle, self._client, *arguments))
        return handle

    def _added(self, kind, handle):
        pointer = P()
        poll = getattr(self._library, f"aeron_async_add_{kind}_poll")
        self._await(lambda: poll(pointer, handle))
        return pointer

    def _await(self, poll):
        deadline = time.monotonic() + _ADD_TIMEOUT_S
        while check(self._library, poll()) == 0:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no response from the driver within {_ADD_TIMEOUT_S} s")
            time.sleep(0.001)

    def _counter_id(self, registration, type):
        found = (c for c in self.counters()["counters"] if (c["registration"], c["type"]) == (registration, type))
        return next(found)["id"]

    def _event(self, kind, **values):
        self._events.append({"event": kind, **values})

    def _on_error(self, _, code, text):
        self._event("error", type=str(code), text=text.decode())

    def _on_publication_error(self, _, pointer):
        values = c_api.PublicationErrorValues.from_address(pointer)
        text = C.string_at(pointer + c_api.PublicationErrorValues.text.offset, values.text_length).decode()
        names = ("registration", "session", "stream", "code")
        self._event("publication_error", text=text, **{name: getattr(values, name) for name in names})

    def _on_counter(self, _, reader, registration, id):
        self._event("counter", registration=registration, id=id)

    def _on_counter_gone(self, _, reader, registration, id):
        self._event("counter_gone", registration=registration, id=id)

    def _on_image_came(self, _, subscription, image):
        self._event("image", **image_state(self._library, image))

    def _on_image_went(self, _, subscription, image):
        self._event("image_gone", **image_state(self._library, image))


if __name__ == "__main__":
    serve(CPeer())
