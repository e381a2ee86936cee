//! Generates the streams of a schedule: publishers, subscribers and channels.

use fastrand::Rng;

use super::{STREAMS, one_of, rarely};
use crate::network::{HostId, ipv4, ipv6};
use crate::roles::{PublisherPlan, SubscriberPlan};

/// Transport form of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// The publisher sends to one IPv4 address.
    Unicast,
    /// The publisher sends to one IPv6 address.
    UnicastV6,
    /// The publisher sends to a multicast group.
    Multicast,
    /// The publisher sends to all receivers that request the stream (dynamic control).
    MdcDynamic,
    /// The publisher sends to all destinations that it adds (manual control).
    MdcManual,
    /// The publisher sends to several addresses of one subscriber.
    MultiDestinationSubscription,
    /// The publisher sends to one address, and spies of its driver read the stream too.
    Spied,
    /// The stream stays in the memory of one driver.
    Ipc,
}

impl Form {
    /// All forms.
    pub const ALL: [Self; 8] = [
        Self::Unicast,
        Self::UnicastV6,
        Self::Multicast,
        Self::MdcDynamic,
        Self::MdcManual,
        Self::MultiDestinationSubscription,
        Self::Spied,
        Self::Ipc,
    ];

    fn is_group(self) -> bool {
        matches!(
            self,
            Self::Multicast
                | Self::MdcDynamic
                | Self::MdcManual
                | Self::MultiDestinationSubscription
        )
    }
}

/// A stream.
#[derive(Clone, Debug)]
pub struct StreamPlan {
    /// Transport form.
    pub form: Form,
    /// The publisher.
    pub publisher: PublisherPlan,
    /// The subscribers.
    pub subscribers: Vec<SubscriberPlan>,
}

/// The parts of the channels of one stream.
struct Draft {
    form: Form,
    stream_id: i32,
    port: u16,
    publisher: HostId,
    subscribers: Vec<HostId>,
    /// Parameters of the publication.
    publishing: Vec<String>,
    /// Parameters of the subscriptions.
    subscribing: Vec<String>,
}

/// Tag of the receivers of a tagged group.
pub const GROUP_TAG: i64 = 77;
/// A session id in the reserved range. No driver assigns such an id.
const UNKNOWN_SESSION_ID: i32 = 7;
/// Offset from a used stream id to one without a publication.
const UNKNOWN_STREAM_OFFSET: i32 = 50;
const MIN_TERM_LENGTH: usize = 64 * 1024;
/// Maximum length of a message in bytes. Messages of this length are permitted in the shortest term.
const MAX_MESSAGE_LENGTH: usize = MIN_TERM_LENGTH / 8 - 64;

/// Generates streams of different forms between `hosts` hosts.
pub fn draw(random: &mut Rng, hosts: usize) -> Vec<StreamPlan> {
    let mut forms = Form::ALL;
    random.shuffle(&mut forms);
    // The forms of the streams are different, so at most one stream of a schedule stays inside a driver.
    forms[..STREAMS]
        .iter()
        .enumerate()
        .map(|(index, form)| draw_stream(random, hosts, *form, index))
        .collect()
}

fn draw_stream(random: &mut Rng, hosts: usize, form: Form, index: usize) -> StreamPlan {
    let publisher = random.usize(..hosts);
    let others: Vec<HostId> = (0..hosts).filter(|host| *host != publisher).collect();
    let subscribers = match form {
        Form::Unicast | Form::UnicastV6 => vec![one_of(random, &others); random.usize(1..=2)],
        // Two such subscriptions would be two endpoints with the same addresses, and the second endpoint could not bind
        // them.
        Form::MultiDestinationSubscription => vec![one_of(random, &others)],
        Form::Multicast | Form::MdcDynamic | Form::MdcManual => {
            let mut all = others;
            if rarely(random, 3) {
                all.push(publisher);
            }
            all
        }
        Form::Spied => vec![one_of(random, &others), publisher],
        Form::Ipc => vec![publisher; 2],
    };
    let is_exclusive = random.bool();
    let mut draft = Draft {
        form,
        stream_id: 1_001 + index as i32,
        port: 20_121 + 100 * index as u16,
        publisher,
        subscribers,
        publishing: publication_parameters(random, is_exclusive),
        subscribing: Vec::new(),
    };
    let is_reliable = draft.draw_subscription_parameters(random);
    draft.draw_flow_control(random);
    StreamPlan {
        form,
        publisher: PublisherPlan {
            host: publisher,
            channel: draft.publication_channel(),
            stream_id: draft.stream_id,
            is_exclusive,
            destinations: draft.publication_destinations(),
            max_message_length: random.usize(300..=MAX_MESSAGE_LENGTH),
            equal_length: None,
            aborts_one_in: 0,
            dies_in_claim: false,
            reconnects: None,
        },
        subscribers: draft.subscribers(random, is_reliable, hosts),
    }
}

fn publication_parameters(random: &mut Rng, is_exclusive: bool) -> Vec<String> {
    let term_length = MIN_TERM_LENGTH << random.u32(..3);
    let mut parameters = vec![format!("term-length={term_length}")];
    let mtu = one_of(random, &[256, 1_408, 1_408, 1_440, 4_096, 8_192]);
    parameters.push(format!("mtu={mtu}"));
    if is_exclusive && random.bool() {
        let initial = one_of(random, &[0, -7, i32::MAX - 1, 1_000_000]);
        let term = initial.wrapping_add(random.i32(0..5));
        let offset = random.usize(..term_length / 32) * 32;
        parameters.push(format!(
            "init-term-id={initial}|term-id={term}|term-offset={offset}"
        ));
    }
    if rarely(random, 3) {
        parameters.push(format!("pub-wnd={}", term_length / 4));
    }
    if rarely(random, 4) {
        parameters.push(format!("sparse={}", random.bool()));
    }
    parameters
}

impl Draft {
    /// Generates parameters of the subscriptions. Returns whether the stream must be complete.
    fn draw_subscription_parameters(&mut self, random: &mut Rng) -> bool {
        let is_reliable = self.form == Form::Ipc || !rarely(random, 6);
        if self.form == Form::Ipc {
            return is_reliable;
        }
        if !is_reliable {
            self.subscribing.push("reliable=false".into());
        }
        if random.bool() {
            self.subscribing.push("cc=cubic".into());
        }
        if rarely(random, 3) {
            let window = one_of(random, &[16, 32, 64]) * 1_024;
            self.subscribing.push(format!("rcv-wnd={window}"));
        }
        if rarely(random, 4) {
            let delay = one_of(random, &["50us", "1ms", "10ms"]);
            self.subscribing.push(format!("nak-delay={delay}"));
        }
        is_reliable
    }

    fn subscribers(
        &self,
        random: &mut Rng,
        is_reliable: bool,
        hosts: usize,
    ) -> Vec<SubscriberPlan> {
        // Subscriptions with the same stream and endpoint must have the same value of `rejoin`.
        let (rejoin, rejoins) = match rarely(random, 12) {
            true => ("|tether=false|rejoin=false", false),
            false => ("", true),
        };
        let mut plans: Vec<_> = (0..self.subscribers.len())
            .map(|number| {
                let tether = if rejoins && rarely(random, 6) {
                    "|tether=false"
                } else {
                    rejoin
                };
                SubscriberPlan {
                    host: self.subscribers[number],
                    channel: format!("{}{tether}", self.subscription_channel(number)),
                    stream_id: self.stream_id,
                    is_reliable,
                    is_served: rejoins,
                    is_waited_for: !self.publishing.iter().any(|it| it == "fc=max"),
                    destinations: self.subscription_destinations(),
                    rest_ns: 0,
                    reconnects: None,
                }
            })
            .collect();
        let can_be_shared = matches!(
            self.form,
            Form::Unicast | Form::UnicastV6 | Form::Multicast | Form::MdcDynamic
        );
        if can_be_shared && rarely(random, 3) {
            plans.push(self.deaf_subscriber(random, hosts));
        }
        plans
    }

    /// Returns a subscriber that shares an endpoint with the others, and requests a session or a stream that has no
    /// publication.
    fn deaf_subscriber(&self, random: &mut Rng, hosts: usize) -> SubscriberPlan {
        let host = match self.form {
            Form::Multicast => random.usize(..hosts),
            _ => self.subscribers[0],
        };
        let way = match self.form {
            Form::Multicast => self.group(host),
            Form::MdcDynamic => {
                let (endpoint, control) = (self.address(host, 0), self.address(self.publisher, 50));
                format!("endpoint={endpoint}|control={control}|control-mode=dynamic")
            }
            _ => format!("endpoint={}", self.address(host, 0)),
        };
        // All subscriptions of an endpoint or stream get the parameters of the first one. If the windows of two
        // receivers differ by more than the smaller window, the receiver with the smaller window never joins the group.
        let shared =
            |parameter: &&String| parameter.starts_with("gtag") || parameter.starts_with("rcv-wnd");
        let shared: String = self
            .subscribing
            .iter()
            .filter(shared)
            .map(|it| format!("|{it}"))
            .collect();
        let (wish, stream_id) = match random.bool() {
            true => (format!("|session-id={UNKNOWN_SESSION_ID}"), self.stream_id),
            false => (String::new(), self.stream_id + UNKNOWN_STREAM_OFFSET),
        };
        SubscriberPlan {
            host,
            channel: format!("aeron:udp?{way}{shared}{wish}"),
            stream_id,
            is_reliable: true,
            is_served: false,
            is_waited_for: false,
            destinations: Vec::new(),
            rest_ns: 0,
            reconnects: None,
        }
    }

    fn draw_flow_control(&mut self, random: &mut Rng) {
        if !self.form.is_group() {
            return;
        }
        let count = self
            .subscribers
            .len()
            .min(if rarely(random, 2) { 1 } else { 9 });
        let flow_control = match random.u8(..5) {
            0 => "max".to_owned(),
            1 => "min".to_owned(),
            2 => format!("min,g:/{}", self.receivers().min(count)),
            3 => format!("tagged,g:{GROUP_TAG}"),
            _ => format!("tagged,g:{GROUP_TAG}/{}", self.receivers().min(count)),
        };
        if flow_control.starts_with("tagged") {
            self.subscribing.push(format!("gtag={GROUP_TAG}"));
        }
        self.publishing.push(format!("fc={flow_control}"));
    }

    /// Returns the number of receivers for flow control: one for each receiving host, because all subscribers of a host
    /// share a receiver.
    fn receivers(&self) -> usize {
        match self.form {
            Form::Multicast | Form::MdcDynamic | Form::MdcManual => self.subscribers.len(),
            _ => 1,
        }
    }

    fn address(&self, host: HostId, port_offset: u16) -> String {
        let port = self.port + port_offset;
        match self.form {
            Form::UnicastV6 => format!("[{}]:{port}", ipv6(host)),
            _ => format!("{}:{port}", ipv4(host)),
        }
    }

    fn publication_channel(&self) -> String {
        let way = match self.form {
            Form::Ipc => return format!("aeron:ipc?{}", self.publishing.join("|")),
            Form::Unicast | Form::UnicastV6 | Form::Spied => {
                format!("endpoint={}", self.address(self.subscribers[0], 0))
            }
            Form::Multicast => self.group(self.publisher),
            Form::MdcDynamic => {
                let control = self.address(self.publisher, 50);
                format!("control={control}|control-mode=dynamic")
            }
            Form::MdcManual | Form::MultiDestinationSubscription => "control-mode=manual".into(),
        };
        format!("aeron:udp?{way}|{}", self.publishing.join("|"))
    }

    fn subscription_channel(&self, number: usize) -> String {
        let host = self.subscribers[number];
        let way = match self.form {
            Form::Ipc => return "aeron:ipc?alias=subscriber".into(),
            Form::Spied if host == self.publisher => {
                let endpoint = self.address(self.subscribers[0], 0);
                return format!("aeron-spy:aeron:udp?endpoint={endpoint}");
            }
            Form::Unicast | Form::UnicastV6 | Form::Spied | Form::MdcManual => {
                format!("endpoint={}", self.address(host, 0))
            }
            Form::Multicast => self.group(host),
            Form::MdcDynamic => {
                let (endpoint, control) = (self.address(host, 0), self.address(self.publisher, 50));
                format!("endpoint={endpoint}|control={control}|control-mode=dynamic")
            }
            Form::MultiDestinationSubscription => "control-mode=manual".into(),
        };
        let parameters = self
            .subscribing
            .iter()
            .map(|parameter| format!("|{parameter}"));
        format!("aeron:udp?{way}{}", parameters.collect::<String>())
    }

    fn group(&self, host: HostId) -> String {
        format!(
            "endpoint=224.20.30.39:{}|interface={}",
            self.port,
            ipv4(host)
        )
    }

    fn publication_destinations(&self) -> Vec<String> {
        let to = |host, offset| format!("aeron:udp?endpoint={}", self.address(host, offset));
        match self.form {
            Form::MdcManual => self.subscribers.iter().map(|host| to(*host, 0)).collect(),
            Form::MultiDestinationSubscription => {
                vec![to(self.subscribers[0], 0), to(self.subscribers[0], 1)]
            }
            _ => Vec::new(),
        }
    }

    fn subscription_destinations(&self) -> Vec<String> {
        let from = |offset| {
            format!(
                "aeron:udp?endpoint={}",
                self.address(self.subscribers[0], offset)
            )
        };
        match self.form {
            Form::MultiDestinationSubscription => vec![from(0), from(1)],
            _ => Vec::new(),
        }
    }
}
