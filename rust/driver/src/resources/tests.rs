//! Tests of the native resource agent, and of the queues between agents.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex};

use crate::diagnostics::ErrorRecorder;
use crate::log_storage::{LogId, LogStorage};
use crate::media::interfaces::SystemInterfaces;
use crate::media::{ChannelResolver, ChannelRole};
use crate::names::SystemNames;
use crate::publication::FirstPages;
use crate::queue::{CAPACITY, QueueConsumer, queue};
use crate::resources::{
    CreatedLog, LookupSubject, NativeResourceAgent, PageRequest, ResourceCommand, ResourceCommands,
    ResourceCounters, ResourceReply, StorageLimits, lanes,
};
use crate::testing::PLAIN_COUNTER;
use aeron_agent::CachedEpochClock;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::{AtomicCounter, CountersManager};
use aeron_memory::error_log::{self, DistinctErrorLog};
use aeron_protocol::ErrorCode;

#[derive(Default)]
struct State {
    logs: HashSet<LogId>,
    refuses_to_remove: bool,
    allocated: Vec<(usize, usize)>,
    /// Number of bytes that can be allocated; 0 for no limit. Allocations do not reduce the number.
    usable: u64,
    /// Whether all allocations fail, regardless of `usable`.
    is_full: bool,
}

/// Storage with removals and allocations that a test can make fail.
#[derive(Clone, Default)]
struct StubbornLogs(Arc<Mutex<State>>);

impl LogStorage for StubbornLogs {
    fn usable_space(&self) -> io::Result<u64> {
        Ok(match self.0.lock().unwrap().usable {
            0 => u64::MAX,
            usable => usable,
        })
    }

    fn create(&mut self, log: LogId, length: usize) -> io::Result<SharedBuffer> {
        self.0.lock().unwrap().logs.insert(log);
        Ok(SharedBuffer::heap(length))
    }

    fn allocate(&mut self, _log: LogId, offset: usize, length: usize) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        if state.is_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.allocated.push((offset, length));
        Ok(())
    }

    fn remove(&mut self, log: LogId) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        if state.refuses_to_remove {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        state.logs.remove(&log);
        Ok(())
    }
}

struct Counters {
    _manager: CountersManager<SharedBuffer>,
    all: Vec<AtomicCounter<SharedBuffer>>,
}

fn counters(count: usize) -> Counters {
    let mut manager = CountersManager::new(
        SharedBuffer::heap(512 * 64),
        SharedBuffer::heap(128 * 64),
        0,
    )
    .unwrap();
    let all = (0..count)
        .map(|_| manager.allocate(&PLAIN_COUNTER, 0).unwrap())
        .collect();
    Counters {
        _manager: manager,
        all,
    }
}

struct Fixture {
    agent: NativeResourceAgent,
    commands: ResourceCommands,
    replies: QueueConsumer<ResourceReply>,
    logs: StubbornLogs,
    counters: Counters,
    error_log: SharedBuffer,
}

impl Fixture {
    fn new() -> Self {
        let counters = counters(5);
        let counter = |index: usize| counters.all[index].clone();
        let error_log = SharedBuffer::heap(64 * 1024);
        let (commands, for_agent) = lanes(&counter(0));
        let (for_conductor, replies) = queue(counter(1));
        let logs = StubbornLogs::default();
        let limits = StorageLimits {
            perform_checks: true,
            low_space_warning: 0,
            free_limit: 1,
            dir: "/aeron".into(),
        };
        let resource_counters = ResourceCounters {
            failed_frees: counter(2),
            bytes_mapped: counter(3),
        };
        let errors = ErrorRecorder::new(
            Arc::new(DistinctErrorLog::new(error_log.clone())),
            counter(4),
            Arc::new(CachedEpochClock::new(0)),
        );
        let agent = NativeResourceAgent::new(
            Box::new(logs.clone()),
            ChannelResolver::new(Box::new(SystemNames), Box::new(SystemInterfaces)),
            for_agent,
            for_conductor,
            limits,
            resource_counters,
            errors,
        );
        Fixture {
            agent,
            commands,
            replies,
            logs,
            counters,
            error_log,
        }
    }

    fn create(&mut self, registration_id: i64) {
        self.commands
            .send(create_command(LogId::Publication(registration_id)));
        self.agent.do_work();
        let reply = self.replies.pop().unwrap();
        assert!(
            matches!(reply, ResourceReply::LogCreated { result: Ok(_), .. }),
            "{reply:?}"
        );
    }

    fn failed_frees(&self) -> i64 {
        self.counters.all[2].get()
    }

    fn bytes_mapped(&self) -> i64 {
        self.counters.all[3].get()
    }
}

const FIRST_PAGE: PageRequest = PageRequest {
    offset: 0,
    length: 4096,
};

fn allocate_command(log: LogId, pages: PageRequest) -> ResourceCommand {
    ResourceCommand::AllocateLog {
        log,
        pages,
        promise: 0,
        is_awaited: false,
    }
}

fn create_command(log: LogId) -> ResourceCommand {
    ResourceCommand::CreateLog {
        log,
        length: 200_704,
        sparse: Some(vec![FIRST_PAGE]),
        first_pages: None,
    }
}

/// 04-185
#[test]
fn a_failed_removal_is_counted_and_repeated_once_per_duty_cycle() {
    let mut fixture = Fixture::new();
    fixture.create(1);
    fixture.create(2);
    fixture.logs.0.lock().unwrap().refuses_to_remove = true;
    for registration_id in [1, 2] {
        fixture.commands.send(ResourceCommand::RemoveLog {
            log: LogId::Publication(registration_id),
        });
    }
    fixture.agent.do_work();
    assert_eq!(
        fixture.failed_frees(),
        2,
        "the first removal and its first repetition"
    );
    for cycle in 3..10 {
        fixture.agent.do_work();
        assert!(fixture.failed_frees() <= 2 * cycle);
    }
    assert_eq!(fixture.bytes_mapped(), 2 * 200_704);
    let entries = error_log::read(&fixture.error_log, 0);
    assert_eq!(
        entries.len(),
        1,
        "the failures of both logs share one entry, because its text does not name the log"
    );
    fixture.logs.0.lock().unwrap().refuses_to_remove = false;
    let failed = fixture.failed_frees();
    fixture.agent.do_work();
    fixture.agent.do_work();
    assert_eq!(
        (fixture.failed_frees(), fixture.bytes_mapped()),
        (failed, 0)
    );
    assert!(fixture.logs.0.lock().unwrap().logs.is_empty());
}

#[test]
fn pages_are_allocated_in_slices_and_each_slice_causes_a_reply() {
    let mut fixture = Fixture::new();
    fixture.create(1);
    fixture.logs.0.lock().unwrap().allocated.clear();
    let length = 10 << 20;
    fixture.commands.send(ResourceCommand::AllocateLog {
        log: LogId::Publication(1),
        pages: PageRequest {
            offset: 4096,
            length,
        },
        promise: 0,
        is_awaited: false,
    });
    for expected in [1 << 20; 10] {
        fixture.agent.do_work();
        let reply = fixture.replies.pop();
        assert!(
            matches!(reply, Ok(ResourceReply::LogAllocated { result: Ok(length), .. }) if length == expected),
            "{reply:?}"
        );
    }
    let slices = fixture.logs.0.lock().unwrap().allocated.clone();
    let expected: Vec<_> = (0..10).map(|n| (4096 + (n << 20), 1 << 20)).collect();
    assert_eq!(slices, expected);
}

#[test]
fn slices_of_logs_take_turns_and_commands_are_executed_between_them() {
    let mut fixture = Fixture::new();
    fixture.create(1);
    fixture.create(2);
    for (log, length) in [(1, 1 << 30), (2, 2 << 20)] {
        fixture.commands.send(ResourceCommand::AllocateLog {
            log: LogId::Publication(log),
            pages: PageRequest { offset: 0, length },
            promise: 0,
            is_awaited: false,
        });
    }
    fixture.commands.send(create_command(LogId::Publication(3)));
    let mut replied = Vec::new();
    for _ in 0..5 {
        fixture.agent.do_work();
        while let Ok(reply) = fixture.replies.pop() {
            replied.push(match reply {
                ResourceReply::LogAllocated { log, .. } => ("slice", log),
                ResourceReply::LogCreated { log, .. } => ("created", log),
                other => panic!("{other:?}"),
            });
        }
    }
    let [one, two, three] = [1, 2, 3].map(LogId::Publication);
    let expected = [
        ("slice", one),
        ("slice", one),
        ("created", three),
        ("slice", two),
        ("slice", one),
        ("slice", two),
    ];
    assert_eq!(replied, expected);
}

#[test]
fn no_more_slices_of_a_removed_log_are_allocated() {
    let mut fixture = Fixture::new();
    fixture.create(1);
    let log = LogId::Publication(1);
    let pages = PageRequest {
        offset: 0,
        length: 8 << 20,
    };
    fixture.commands.send(allocate_command(log, pages));
    fixture.agent.do_work();
    fixture.commands.send(ResourceCommand::RemoveLog { log });
    fixture.commands.send(allocate_command(log, pages));
    fixture.agent.do_work();
    let count = fixture.logs.0.lock().unwrap().allocated.len();
    for _ in 0..10 {
        fixture.agent.do_work();
    }
    assert_eq!(fixture.logs.0.lock().unwrap().allocated.len(), count);
}

#[test]
fn a_command_of_a_client_does_not_wait_for_images() {
    let mut fixture = Fixture::new();
    for image in 0..500 {
        fixture.commands.send(create_command(LogId::Image(image)));
    }
    fixture.commands.send(create_command(LogId::Publication(1)));
    fixture.agent.do_work();
    let created = std::iter::from_fn(|| fixture.replies.pop().ok()).any(|reply| {
        matches!(
            reply,
            ResourceReply::LogCreated {
                log: LogId::Publication(1),
                ..
            }
        )
    });
    assert!(created);
}

#[test]
fn two_logs_are_not_granted_the_same_bytes() {
    check_that_the_second_log_finds_no_room(8 << 20, 0);
}

#[test]
fn bytes_that_are_promised_to_a_log_are_not_granted_to_another_log() {
    check_that_the_second_log_finds_no_room(1 << 20, 7 << 20);
}

/// Two logs request 8 MiB each, and there are 12 MiB of space. Checks that the second log is refused.
fn check_that_the_second_log_finds_no_room(granted: usize, promised: usize) {
    let mut fixture = Fixture::new();
    for log in [1, 2] {
        fixture
            .commands
            .send(create_sparse_command(LogId::Publication(log)));
        fixture.agent.do_work();
        fixture.replies.pop().unwrap();
    }
    fixture.logs.0.lock().unwrap().usable = 12 << 20;
    for log in [1, 2] {
        fixture.commands.send(ResourceCommand::AllocateLog {
            log: LogId::Publication(log),
            pages: PageRequest {
                offset: 0,
                length: granted,
            },
            promise: promised,
            is_awaited: false,
        });
    }
    let mut failed = Vec::new();
    for _ in 0..20 {
        fixture.agent.do_work();
        while let Ok(reply) = fixture.replies.pop() {
            if let ResourceReply::LogAllocated {
                log,
                result: Err(error),
            } = reply
            {
                failed.push((log, error.code()));
            }
        }
    }
    assert_eq!(failed, [(LogId::Publication(2), ErrorCode::StorageSpace)]);
}

const FIRST_PAGES: PageRequest = PageRequest {
    offset: 0,
    length: 2 << 20,
};

fn create_sparse_command(log: LogId) -> ResourceCommand {
    ResourceCommand::CreateLog {
        log,
        length: 64 << 20,
        sparse: Some(vec![FIRST_PAGE]),
        first_pages: None,
    }
}

fn create_with_first_pages(log: LogId) -> ResourceCommand {
    ResourceCommand::CreateLog {
        log,
        length: 64 << 20,
        sparse: Some(vec![FIRST_PAGE]),
        first_pages: Some(FirstPages {
            pages: vec![FIRST_PAGES],
            promise: 30 << 20,
        }),
    }
}

/// Returns whether the first pages of the log in the next reply were allocated.
fn has_first_pages(fixture: &mut Fixture) -> bool {
    match fixture.replies.pop() {
        Ok(ResourceReply::LogCreated {
            result:
                Ok(CreatedLog {
                    first_pages: Some(result),
                    ..
                }),
            ..
        }) => result.is_ok(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_log_without_space_for_its_first_pages_is_created_nevertheless() {
    let mut fixture = Fixture::new();
    for (log, is_allocated) in [(1, true), (2, false)] {
        fixture
            .commands
            .send(create_with_first_pages(LogId::Publication(log)));
        fixture.agent.do_work();
        assert_eq!(has_first_pages(&mut fixture), is_allocated);
        // 30 MiB are promised to the first log. The rest suffices for the second log, but not for its first pages.
        fixture.logs.0.lock().unwrap().usable = 47 << 20;
    }
}

/// The first pages of a new log, and pages for a new subscriber, do not wait for the slices of another log.
#[test]
fn pages_that_a_client_waits_for_are_allocated_at_once() {
    let mut fixture = Fixture::new();
    fixture
        .commands
        .send(create_sparse_command(LogId::Publication(1)));
    fixture
        .commands
        .send(create_sparse_command(LogId::Publication(2)));
    let long = PageRequest {
        offset: 0,
        length: 32 << 20,
    };
    fixture
        .commands
        .send(allocate_command(LogId::Publication(1), long));
    for _ in 0..3 {
        fixture.agent.do_work();
    }
    while fixture.replies.pop().is_ok() {}
    fixture.commands.send(ResourceCommand::AllocateLog {
        log: LogId::Publication(2),
        pages: FIRST_PAGES,
        promise: 0,
        is_awaited: true,
    });
    fixture.agent.do_work();
    let reply = fixture.replies.pop();
    assert!(
        matches!(
            reply,
            Ok(ResourceReply::LogAllocated { log: LogId::Publication(2), result: Ok(length) })
                if length == FIRST_PAGES.length
        ),
        "{reply:?}"
    );
    while fixture.replies.pop().is_ok() {}
    fixture
        .commands
        .send(create_with_first_pages(LogId::Publication(3)));
    fixture.agent.do_work();
    assert!(has_first_pages(&mut fixture));
}

#[test]
fn closing_removes_logs_that_were_not_released() {
    let mut fixture = Fixture::new();
    fixture.create(1);
    fixture.commands.send(ResourceCommand::CreateLog {
        log: LogId::Publication(2),
        length: 200_704,
        sparse: None,
        first_pages: None,
    });
    fixture.agent.close();
    assert!(fixture.logs.0.lock().unwrap().logs.is_empty());
    assert_eq!(fixture.bytes_mapped(), 0);
}

fn create_full_command(log: LogId, length: usize) -> ResourceCommand {
    ResourceCommand::CreateLog {
        log,
        length,
        sparse: None,
        first_pages: None,
    }
}

/// Runs `cycles` duty cycles. Returns the replies of the agent.
fn run(fixture: &mut Fixture, cycles: usize) -> Vec<String> {
    let mut replies = Vec::new();
    for _ in 0..cycles {
        fixture.agent.do_work();
        while let Ok(reply) = fixture.replies.pop() {
            replies.push(match reply {
                ResourceReply::LogCreated { log, result } => {
                    format!("{log:?} {}", result.map_or("refused", |_| "created"))
                }
                ResourceReply::CreatingLog { registration_id } => {
                    format!("creating {registration_id}")
                }
                other => panic!("{other:?}"),
            });
        }
    }
    replies
}

#[test]
fn a_log_that_is_not_sparse_is_created_in_slices_between_other_commands() {
    let mut fixture = Fixture::new();
    let long = create_full_command(LogId::Publication(1), 64 << 20);
    fixture.commands.send(long);
    fixture.commands.send(create_command(LogId::Publication(2)));
    fixture.commands.send(create_command(LogId::Image(3)));
    let replies = run(&mut fixture, 2);
    assert_eq!(
        replies,
        ["creating 1", "Image(3) created", "Publication(2) created"]
    );
    assert_eq!(run(&mut fixture, 61), [""; 0]);
    assert_eq!(run(&mut fixture, 1), ["Publication(1) created"]);
}

#[test]
fn images_that_are_not_sparse_delay_neither_publications_nor_each_other() {
    let mut fixture = Fixture::new();
    for (image, length) in [(1, 1 << 30), (2, 1 << 20), (3, 1 << 30)] {
        let command = create_full_command(LogId::Image(image), length);
        fixture.commands.send(command);
    }
    let command = create_full_command(LogId::Publication(4), 4 << 20);
    fixture.commands.send(command);
    assert_eq!(
        run(&mut fixture, 4),
        ["creating 4", "Image(2) created", "Publication(4) created"]
    );
}

#[test]
fn a_flood_of_images_that_are_not_sparse_does_not_delay_the_first_images() {
    let mut fixture = Fixture::new();
    for image in 0..500 {
        let command = create_full_command(LogId::Image(image), 3 << 20);
        fixture.commands.send(command);
    }
    let replies = run(&mut fixture, 60);
    assert_eq!(replies[0], "Image(0) created");
    assert!(replies.len() >= 10, "{replies:?}");
}

#[test]
fn a_log_is_refused_and_removed_if_the_space_runs_out_during_its_creation() {
    let mut fixture = Fixture::new();
    let command = create_full_command(LogId::Publication(1), 8 << 20);
    fixture.commands.send(command);
    assert_eq!(run(&mut fixture, 3), ["creating 1"]);
    fixture.logs.0.lock().unwrap().is_full = true;
    assert_eq!(run(&mut fixture, 3), ["Publication(1) refused"]);
    assert!(fixture.logs.0.lock().unwrap().logs.is_empty());
    assert_eq!(fixture.bytes_mapped(), 0);
}

#[test]
fn bytes_of_a_log_that_is_being_created_are_not_granted_to_another_log() {
    let mut fixture = Fixture::new();
    fixture.logs.0.lock().unwrap().usable = 12 << 20;
    for log in [1, 2] {
        let command = create_full_command(LogId::Publication(log), 8 << 20);
        fixture.commands.send(command);
    }
    let replies = run(&mut fixture, 10);
    assert!(replies.contains(&"Publication(2) refused".to_owned()));
    assert!(replies.contains(&"Publication(1) created".to_owned()));
}

/// 04-187
#[test]
fn a_full_queue_is_counted_and_loses_no_command() {
    let counters = counters(1);
    let (mut sender, mut receiver) = queue(counters.all[0].clone());
    let total = CAPACITY + 100;
    for command in 0..total {
        sender.send(command);
        assert_eq!(sender.has_room(), command + 1 < CAPACITY);
    }
    assert!(counters.all[0].get() > 0);
    let mut received = Vec::new();
    while received.len() < total {
        received.extend(std::iter::from_fn(|| receiver.pop().ok()));
        sender.flush();
    }
    assert!(received.into_iter().eq(0..total));
    assert!(sender.has_room());
}

#[test]
fn each_duty_cycle_resolves_one_channel_or_name() {
    let mut fixture = Fixture::new();
    fixture.commands.send(ResourceCommand::LookUp {
        id: 7,
        what: LookupSubject::Channel {
            channel: (*b"aeron:udp?endpoint=127.0.0.1:40123").into(),
            role: ChannelRole::Publication,
        },
    });
    fixture.commands.send(ResourceCommand::LookUp {
        id: 8,
        what: LookupSubject::Name {
            name: "127.0.0.1:port".into(),
            parameter: "control",
        },
    });
    fixture.agent.do_work();
    let Ok(ResourceReply::ChannelResolved { id: 7, result }) = fixture.replies.pop() else {
        panic!("no answer");
    };
    assert_eq!(
        result.unwrap().canonical_form,
        "UDP-0.0.0.0:0-127.0.0.1:40123"
    );
    assert!(fixture.replies.pop().is_err());
    fixture.agent.do_work();
    let Ok(ResourceReply::NameResolved { id: 8, result }) = fixture.replies.pop() else {
        panic!("no answer");
    };
    let error = result.unwrap_err();
    assert!(error.text().contains("Unresolved - control=127.0.0.1:port"));
}
