"""Runs our client, controlled by lines of text. `peers.py` describes the protocol."""

from collections import deque

from serve import CLOSED, MAX_POSITION_EXCEEDED, Publisher, Receiver, false_frames, serve

import aeron


class _Publication(Publisher):
    def __init__(self, publication):
        super().__init__(self._attempt)
        self.it = publication
        self._claim = None

    def constants(self):
        it = self.it
        return {
            "registration": it.registration_id,
            "original": it.original_registration_id,
            "session": it.session_id,
            "stream": it.stream_id,
            "initial_term": it.initial_term_id,
            "term_length": it.term_buffer_length,
            "max_payload": it.max_payload_length,
            "max_message": it.max_message_length,
            "max_position": it.max_possible_position,
            "limit_counter": it.position_limit_id,
            "status_counter": it.channel_status_id,
        }

    def state(self):
        state = {"connected": self.it.is_connected, "closed": self.it.is_closed}
        return state if self.it.is_closed else {**state, "position": self.it.position, "limit": self.it.position_limit}

    def hold(self, length):
        claim = self.it.try_claim(int(length))
        if not claim:
            return {"result": int(claim)}
        self._claim = claim
        return {"result": claim.position}

    def finish(self, abort):
        if abort:
            self._claim.abort()
        else:
            self._claim.view[:] = self.take(len(self._claim))
            self._claim.commit()

    def pad(self, length):
        return {"result": int(self.it.append_padding(int(length)))}

    def _attempt(self, how, payload):
        try:
            return self._sent(how, payload)
        except aeron.MaxPositionExceededError:
            return MAX_POSITION_EXCEEDED
        except aeron.PublicationClosedError:
            return CLOSED

    def _abort_claim(self, length):
        """Claims, fills and aborts a message. Returns the result of the claim."""
        claim = self.it.try_claim(length)
        if not claim:
            return int(claim)
        claim.view[:] = false_frames(length)
        claim.abort()
        return 1

    def _sent(self, how, payload):
        if how == "parts":
            half = len(payload) // 2
            return int(self.it.offer_parts([payload[:half], payload[half:]]))
        if how == "aborts":
            for _ in range(2):
                if (result := self._abort_claim(len(payload))) < 0:
                    return result
        elif how != "claim":
            return int(self.it.offer(payload))
        claim = self.it.try_claim(len(payload))
        if not claim:
            return int(claim)
        with claim as view:
            view[:] = payload
        return claim.position


class _Subscription(Receiver):
    def __init__(self, subscription):
        super().__init__(self._poll_once)
        self.it = subscription
        self._assembler = aeron.FragmentAssembler(self._on_message)

    def state(self):
        images = [image_state(image) for image in self.it.images]
        return {"connected": self.it.is_connected, "closed": self.it.is_closed, "images": images}

    def _poll_once(self, limit):
        return 0 if self.it.is_closed else self.it.poll(self._assembler, limit)

    def _on_message(self, payload, header):
        self.on_message(header.session_id, header.position, payload)


def image_state(image):
    return {
        "session": image.session_id,
        "correlation": image.correlation_id,
        "source": image.source_identity,
        "initial_term": image.initial_term_id,
        "term_length": image.term_buffer_length,
        "mtu": image.mtu_length,
        "join": image.join_position,
        "position": image.position,
        "position_counter": image.subscriber_position_id,
        "closed": image.is_closed,
        "end_of_stream": image.is_end_of_stream,
        "revoked": image.is_publication_revoked,
    }


class OurPeer:
    """One client at a time, with its resources by registration id."""

    def __init__(self):
        self._client = None
        self._events = deque()
        self._clear()

    def _clear(self):
        self._publications, self._subscriptions, self._counters = {}, {}, {}
        self._events.clear()

    def connect(self, dir, name="", driver_timeout_ms="10000"):
        self._client = aeron.connect(
            dir,
            client_name=name,
            driver_timeout_ms=int(driver_timeout_ms),
            error_handler=lambda error: self._event("error", type=type(error).__name__, text=str(error)),
            on_available_image=lambda image: self._event("image", **image_state(image)),
            on_unavailable_image=lambda image: self._event("image_gone", **image_state(image)),
            on_available_counter=lambda _, registration, id: self._event("counter", registration=registration, id=id),
            on_unavailable_counter=lambda _, registration, id: self._event(
                "counter_gone", registration=registration, id=id
            ),
            on_close=lambda: self._event("closed"),
            on_publication_error=lambda frame: self._event(
                "publication_error",
                registration=frame.registration_id,
                session=frame.session_id,
                stream=frame.stream_id,
                code=frame.error_code,
                text=frame.error_message,
            ),
        )
        return {"client": self._client.client_id}

    def disconnect(self):
        if self._client:
            self._client.close()
            self._client = None
        self._clear()

    def closed(self):
        return {"closed": self._client is None or self._client.is_closed}

    def add_publication(self, channel, stream, exclusive="false"):
        add = self._client.add_exclusive_publication if exclusive == "true" else self._client.add_publication
        publication = _Publication(add(channel, int(stream)))
        self._publications[str(publication.it.registration_id)] = publication
        return publication.constants()

    def add_subscription(self, channel, stream):
        subscription = _Subscription(self._client.add_subscription(channel, int(stream)))
        self._subscriptions[str(subscription.it.registration_id)] = subscription
        return {"registration": subscription.it.registration_id}

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
        self._subscriptions[id].it.image_by_session_id(int(session)).reject(reason)

    def add_destination(self, id, channel):
        self._with_destinations(id).add_destination(channel)

    def remove_destination(self, id, channel):
        self._with_destinations(id).remove_destination(channel)

    def _with_destinations(self, id):
        return (self._publications.get(id) or self._subscriptions[id]).it

    def add_counter(self, type, label, key="", registration=""):
        key = bytes.fromhex(key)
        if registration:
            counter = self._client.add_static_counter(int(type), label, int(registration), key)
        else:
            counter = self._client.add_counter(int(type), label, key)
        self._counters[str(counter.registration_id)] = counter
        return {"id": counter.id, "registration": counter.registration_id}

    def set_counter(self, id, value):
        self._counters[id].set(int(value))

    def counters(self):
        return {
            "counters": [
                {
                    "id": counter.id,
                    "type": counter.type_id,
                    "label": counter.label,
                    "key": counter.key.hex(),
                    "value": counter.value,
                    "registration": counter.registration_id,
                    "owner": counter.owner_id,
                }
                for counter in self._client.counters_reader
            ]
        }

    def next_session(self, stream):
        return {"session": self._client.next_session_id(int(stream))}

    def events(self):
        events = []
        while self._events:
            events.append(self._events.popleft())
        return {"events": events}

    def close(self, id, revoke="false"):
        if publication := self._publications.pop(id, None):
            publication.it.revoke() if revoke == "true" else publication.it.close()
        for resources in (self._subscriptions, self._counters):
            if resource := resources.pop(id, None):
                getattr(resource, "it", resource).close()

    def _event(self, kind, **values):
        self._events.append({"event": kind, **values})


if __name__ == "__main__":
    serve(OurPeer())
