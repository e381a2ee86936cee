//! Rules of the runner: an agent runs at most once and is always closed, even if it fails or panics.

use std::borrow::Cow;
use std::sync::mpsc;

use super::*;
use crate::idle::{SleepingIdleStrategy, YieldingIdleStrategy};
use crate::testing::{Journal, ScriptedAgent};

fn runner(agent: impl Agent + 'static, journal: &Journal) -> AgentRunner {
    let (handled, counted) = (journal.clone(), journal.clone());
    AgentRunner::new(
        Box::new(agent),
        Box::new(YieldingIdleStrategy),
        Arc::new(move |error: &AgentError| handled.note(error)),
        Some(Arc::new(move || counted.note("counted"))),
    )
}

#[test]
fn a_termination_ends_the_loop_and_is_reported_but_not_counted_03_117() {
    let journal = Journal::default();
    let script = [Ok(1), Err(AgentError::terminated("done"))];
    let runner = runner(ScriptedAgent::new("a", &journal).working(script), &journal);
    runner.run();
    assert!(runner.is_closed());
    assert_eq!(
        journal.take(),
        [
            "a start",
            "a work",
            "a work",
            "agent terminated: done",
            "a close"
        ]
    );
}

#[test]
fn a_runner_runs_its_agent_at_most_once_03_117() {
    let journal = Journal::default();
    let runner = runner(
        ScriptedAgent::new("a", &journal).working([Err(AgentError::Interrupted)]),
        &journal,
    );
    runner.run();
    runner.run();
    runner.start_on_thread().unwrap();
    runner.close();
    assert_eq!(journal.take(), ["a start", "a work", "a close"]);
}

#[test]
fn after_a_failed_duty_cycle_the_loop_counts_the_error_and_continues_03_117() {
    let journal = Journal::default();
    let script = [
        Err(AgentError::failed("first")),
        Ok(1),
        Err(AgentError::failed("second")),
        Err(AgentError::Interrupted),
    ];
    runner(ScriptedAgent::new("a", &journal).working(script), &journal).run();
    let expected = [
        "a start", "a work", "counted", "first", "a work", "a work", "counted", "second", "a work",
        "a close",
    ];
    assert_eq!(journal.take(), expected);
}

#[test]
fn close_joins_the_thread_and_closes_the_agent_exactly_once_03_117() {
    let journal = Journal::default();
    let runner = Arc::new(runner(ScriptedAgent::new("a", &journal), &journal));
    runner.start_on_thread().unwrap();
    while journal.count("a work") == 0 {
        std::thread::yield_now();
    }
    assert!(!runner.is_closed());
    let closers: Vec<_> = (0..4)
        .map(|_| Arc::clone(&runner))
        .map(|runner| std::thread::spawn(move || runner.close()))
        .collect();
    closers
        .into_iter()
        .for_each(|closer| closer.join().unwrap());
    assert!(runner.is_closed());
    assert_eq!((journal.count("a start"), journal.count("a close")), (1, 1));
    assert_eq!(journal.lines().last().unwrap(), "a close");
}

#[test]
fn closing_before_the_start_closes_the_agent_on_the_calling_thread_03_117() {
    let journal = Journal::default();
    let runner = runner(ScriptedAgent::new("a", &journal), &journal);
    runner.close();
    runner.close();
    runner.start_on_thread().unwrap();
    runner.run();
    assert!(runner.is_closed() && runner.thread().is_none());
    assert_eq!(journal.take(), ["a close"]);
}

#[test]
fn an_agent_that_does_not_start_does_no_work_and_is_closed() {
    let journal = Journal::default();
    runner(
        ScriptedAgent::new("a", &journal).failing_start(AgentError::failed("no")),
        &journal,
    )
    .run();
    assert_eq!(journal.take(), ["a start", "no", "a close"]);
}

#[test]
fn a_failing_close_is_reported() {
    let journal = Journal::default();
    let runner = runner(
        ScriptedAgent::new("a", &journal).failing_close(AgentError::failed("stuck")),
        &journal,
    );
    drop(runner);
    assert_eq!(journal.take(), ["a close", "stuck"]);
}

#[test]
fn the_thread_has_the_name_of_the_role() {
    struct Namer(mpsc::Sender<Option<String>>);
    impl Agent for Namer {
        fn do_work(&mut self) -> Result<usize, AgentError> {
            self.0
                .send(std::thread::current().name().map(str::to_owned))
                .unwrap();
            Err(AgentError::Interrupted)
        }

        fn role_name(&self) -> Cow<'_, str> {
            "conductor".into()
        }
    }
    let (sender, names) = mpsc::channel();
    let runner = runner(Namer(sender), &Journal::default());
    runner.start_on_thread().unwrap();
    assert_eq!(names.recv().unwrap().as_deref(), Some("conductor"));
    runner.close();
    assert_eq!(runner.thread().unwrap().name(), Some("conductor"));
}

#[test]
fn a_panic_is_reported_and_the_agent_is_closed_before_the_panic_continues() {
    struct Panicking(Journal);
    impl Agent for Panicking {
        fn do_work(&mut self) -> Result<usize, AgentError> {
            panic!("a bug")
        }

        fn on_close(&mut self) -> Result<(), AgentError> {
            self.0.note("closed");
            Ok(())
        }

        fn role_name(&self) -> Cow<'_, str> {
            "buggy".into()
        }
    }
    let journal = Journal::default();
    let runner = runner(Panicking(journal.clone()), &journal);
    let panic = catch_unwind(AssertUnwindSafe(|| runner.run())).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"a bug"));
    assert!(runner.is_closed());
    assert_eq!(journal.take(), ["buggy panicked: a bug", "closed"]);
}

/// An agent that signals the start of its duty cycle, and stays in it until the test releases it.
struct Stuck {
    entered: mpsc::Sender<()>,
    gate: mpsc::Receiver<()>,
}

impl Agent for Stuck {
    fn do_work(&mut self) -> Result<usize, AgentError> {
        let _ = self.entered.send(());
        let _ = self.gate.recv();
        Ok(1)
    }

    fn role_name(&self) -> Cow<'_, str> {
        "stuck".into()
    }
}

#[test]
fn closing_reports_an_agent_that_does_not_end_and_continues_to_wait() {
    let (release, gate) = mpsc::channel();
    let (entered, has_entered) = mpsc::channel();
    let runner = runner(Stuck { entered, gate }, &Journal::default());
    runner.start_on_thread().unwrap();
    has_entered.recv().unwrap();
    let mut complaints = Vec::new();
    let mut release = Some(release);
    runner.close_with(Duration::from_millis(10), |role_name| {
        complaints.push(role_name.to_owned());
        if complaints.len() == 2 {
            release = None;
        }
    });
    assert!(runner.is_closed());
    assert!(complaints.len() >= 2 && complaints.iter().all(|name| name == "stuck"));
}

#[test]
fn closing_ends_a_long_park_at_once() {
    let journal = Journal::default();
    let an_hour_ns = 3_600_000_000_000;
    let agent = ScriptedAgent::new("a", &journal).boxed();
    let idle = Box::new(SleepingIdleStrategy::new(an_hour_ns));
    let runner = AgentRunner::new(agent, idle, Arc::new(|_: &AgentError| {}), None);
    runner.start_on_thread().unwrap();
    while journal.count("a work") == 0 {
        std::thread::yield_now();
    }
    runner.close_with(Duration::from_secs(60), |_| {
        panic!("the agent is still parked")
    });
    assert!(runner.is_closed());
}

#[test]
fn an_agent_may_close_its_own_runner() {
    struct SelfClosing(mpsc::Receiver<Arc<AgentRunner>>);
    impl Agent for SelfClosing {
        fn do_work(&mut self) -> Result<usize, AgentError> {
            self.0.recv().unwrap().close();
            Ok(1)
        }

        fn role_name(&self) -> Cow<'_, str> {
            "self".into()
        }
    }
    let (sender, own_runner) = mpsc::channel();
    let runner = Arc::new(runner(SelfClosing(own_runner), &Journal::default()));
    sender.send(Arc::clone(&runner)).unwrap();
    runner.run();
    assert!(runner.is_closed());
}

#[test]
fn progress_is_taken_when_each_agent_has_completed_a_duty_cycle() {
    let journal = Journal::default();
    let idle = || Box::new(SleepingIdleStrategy::new(1_000_000));
    let ignore = || Arc::new(|_: &AgentError| ());
    let agent = |name: &'static str| Box::new(ScriptedAgent::new(name, &journal));
    let runners = ["a", "b"].map(|name| AgentRunner::new(agent(name), idle(), ignore(), None));
    let is_taken = || AgentRunner::take_progress(&runners);
    runners[0].start_on_thread().unwrap();
    while journal.count("a work") < 2 {
        std::thread::yield_now();
    }
    assert!(!is_taken(), "b has not completed a duty cycle");
    runners[1].start_on_thread().unwrap();
    while !is_taken() {
        std::thread::yield_now();
    }
    while !is_taken() {
        std::thread::yield_now();
    }
    runners[1].close();
    // The last duty cycles may have been after the last look.
    is_taken();
    let before = journal.count("a work");
    while journal.count("a work") < before + 2 {
        std::thread::yield_now();
    }
    assert!(!is_taken(), "b has ended");
}
