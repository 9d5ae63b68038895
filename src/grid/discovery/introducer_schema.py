"""The remote interfaces of an introducer and its subscribers, with 1.20's names on the wire. [spec wire 2, 6]"""

from __future__ import annotations

from foolscap.api import RemoteInterface
from foolscap.constraint import Any as Anything
from foolscap.constraint import ByteStringConstraint
from foolscap.referenceable import Referenceable
from foolscap.remoteinterface import RemoteMethodSchema
from foolscap.schema import DictOf, SetOf, TupleOf
from foolscap.slicers.none import Nothing

from grid.limits import MAX_ANNOUNCEMENTS, MAX_RELAYED_ANNOUNCEMENT

INTRODUCER_KEY = b"http://allmydata.org/tahoe/protocols/introducer/v2"
APPLICATION_KEY = b"application-version"

_ANYTHING = Anything()
_NOTHING = Nothing()
_SIGNED = TupleOf(
    ByteStringConstraint(MAX_RELAYED_ANNOUNCEMENT),
    ByteStringConstraint(MAX_RELAYED_ANNOUNCEMENT),
    ByteStringConstraint(MAX_RELAYED_ANNOUNCEMENT),
)


class RISubscriber(RemoteInterface):
    """Receives announcements."""

    __remote_name__ = "RIIntroducerSubscriberClient_v2.tahoe.allmydata.com"

    announce_v2 = RemoteMethodSchema(_response=_NOTHING, announcements=SetOf(_SIGNED, MAX_ANNOUNCEMENTS))


class RIIntroducer(RemoteInterface):
    """Relays announcements."""

    __remote_name__ = "RIIntroducerPublisherAndSubscriberService_v2.tahoe.allmydata.com"

    get_version = RemoteMethodSchema(_response=DictOf(ByteStringConstraint(200), _ANYTHING, 20))
    publish_v2 = RemoteMethodSchema(_response=_NOTHING, announcement=_SIGNED, canary=Referenceable)
    subscribe_v2 = RemoteMethodSchema(
        _response=_NOTHING,
        subscriber=RISubscriber,
        service_name=ByteStringConstraint(200),
        subscriber_info=DictOf(ByteStringConstraint(200), _ANYTHING, 20),
    )
