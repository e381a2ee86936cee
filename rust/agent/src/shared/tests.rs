//! Tests of agents that several threads share.

use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::*;
use crate::testing::{Journal, ScriptedAgent};

fn shared(
    journal: &Journal,
    script: impl IntoIterator<Item = Result<usize, AgentError>>,
) -> SharedAgent {
    SharedAgent::new(
        ScriptedAgent::new("network", journal)
            .working(script)
            .boxed(),
    )
}

#[test]
fn turns_run_the_agent_only_between_its_start_and_its_close() {
    let journal = Journal::default();
    let mut agent = shared(&journal, [Ok(3), Ok(2)]);
    let turns = agent.turns();
    assert_eq!(turns.take(), 0);
    agent.on_start().unwrap();
    assert_eq!(turns.take(), 3);
    assert_eq!(agent.do_work().unwrap(), 2);
    agent.on_close().unwrap();
    assert_eq!(turns.take(), 0);
    assert_eq!(agent.role_name(), "network");
    assert_eq!(
        journal.lines(),
        [
            "network start",
            "network work",
            "network work",
            "network close"
        ]
    );
}

/// After a turn has failed, no further turn runs until the loop has returned the failure.
#[test]
fn the_loop_gets_the_failure_of_a_turn_before_another_turn() {
    let journal = Journal::default();
    let mut agent = shared(&journal, [Err(AgentError::failed("no buffers")), Ok(1)]);
    let turns = agent.turns();
    agent.on_start().unwrap();
    assert_eq!((turns.take(), turns.take()), (0, 0));
    assert_eq!(agent.do_work().unwrap_err().to_string(), "no buffers");
    assert_eq!(turns.take(), 1);
}

#[test]
fn an_agent_that_ends_itself_in_a_turn_ends_its_loop_and_has_no_further_turn() {
    let journal = Journal::default();
    let mut agent = shared(&journal, [Err(AgentError::terminated("enough")), Ok(1)]);
    let turns = agent.turns();
    agent.on_start().unwrap();
    assert_eq!(turns.take(), 0);
    let told = agent.do_work().unwrap_err();
    assert!(matches!(told, AgentError::Terminated(_)), "{told}");
    assert_eq!(turns.take(), 0);
    assert_eq!(journal.count("network work"), 1);
}

/// An agent that calls a function of the test in each duty cycle.
struct Acting<F>(F);

impl<F: FnMut() -> usize + Send> Agent for Acting<F> {
    fn do_work(&mut self) -> Result<usize, AgentError> {
        Ok((self.0)())
    }

    fn role_name(&self) -> Cow<'_, str> {
        "acting".into()
    }
}

fn acting(duty: impl FnMut() -> usize + Send + 'static) -> SharedAgent {
    let mut agent = SharedAgent::new(Box::new(Acting(duty)));
    agent.on_start().unwrap();
    agent
}

/// A panic in a turn ends the loop, and does not reach the thread that ran the turn.
#[test]
fn a_panic_in_a_turn_ends_the_loop_and_not_the_thread_that_took_the_turn() {
    let mut agent = acting(|| panic!("a bug"));
    let turns = agent.turns();
    assert_eq!(turns.take(), 0);
    let told = agent.do_work().unwrap_err();
    assert!(matches!(told, AgentError::Terminated(_)));
    assert_eq!(told.to_string(), "agent terminated: acting panicked: a bug");
    assert_eq!(turns.take(), 0);
    agent.on_close().unwrap();
}

#[test]
fn after_a_panic_of_the_loop_there_are_no_turns_and_the_agent_still_closes() {
    let mut agent = acting(|| panic!("a bug"));
    let turns = agent.turns();
    assert!(catch_unwind(AssertUnwindSafe(|| agent.do_work())).is_err());
    assert_eq!(turns.take(), 0);
    agent.on_close().unwrap();
}

/// Returns an agent that signals the start of its duty cycle, and stays in it until the test releases it.
fn stuck() -> (SharedAgent, Receiver<()>, Sender<()>) {
    let (begun, has_begun) = channel();
    let (go, may_go) = channel();
    let agent = acting(move || {
        begun.send(()).unwrap();
        may_go.recv().unwrap();
        1
    });
    (agent, has_begun, go)
}

/// While a turn runs, the loop and other turns return 0 at once. Only closing waits for the end of the turn.
#[test]
fn only_closing_the_agent_waits_for_a_turn_of_another_thread() {
    let (mut agent, has_begun, go) = stuck();
    let turns = agent.turns();
    let other = turns.clone();
    let in_turn = thread::spawn(move || other.take());
    has_begun.recv().unwrap();
    assert_eq!(turns.take(), 0);
    assert_eq!(agent.do_work().unwrap(), 0);
    let closing = thread::spawn(move || agent.on_close());
    go.send(()).unwrap();
    assert_eq!(in_turn.join().unwrap(), 1);
    closing.join().unwrap().unwrap();
}

/// Closing drops the agent with all it owns, even if `AgentTurns` still exist.
#[test]
fn a_closed_agent_is_dropped_even_if_other_threads_may_take_turns() {
    let held = Arc::new(());
    let inside = Arc::clone(&held);
    let mut agent = acting(move || Arc::strong_count(&inside));
    let turns = agent.turns();
    assert_eq!(turns.take(), 2);
    agent.on_close().unwrap();
    assert_eq!(Arc::strong_count(&held), 1);
}

/// Many threads and a loop share an agent. Two duty cycles at the same time would corrupt its state.
#[test]
fn duty_cycles_run_one_at_a_time_and_none_is_lost() {
    const TURNS: usize = 20_000;
    let inside = AtomicUsize::new(0);
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let mut agent = acting(move || {
        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
        // Not an atomic addition: concurrent duty cycles would lose counts, and the test would fail.
        counted.store(counted.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        inside.fetch_sub(1, Ordering::Relaxed);
        1
    });
    let takers: Vec<_> = (0..4)
        .map(|_| agent.turns())
        .map(|turns| thread::spawn(move || (0..TURNS).map(|_| turns.take()).sum::<usize>()))
        .collect();
    let own: usize = (0..TURNS).map(|_| agent.do_work().unwrap()).sum();
    let taken: usize = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
    assert_eq!(count.load(Ordering::Relaxed), own + taken);
}

/// Records the calls of an idle strategy.
struct NotingIdle(Journal);

impl IdleStrategy for NotingIdle {
    fn idle_once(&mut self) {
        self.0.note("idle once");
    }

    fn idle(&mut self, work_count: usize) {
        self.0.note(format_args!("idle {work_count}"));
    }

    fn reset(&mut self) {
        self.0.note("reset");
    }

    fn alias(&self) -> &'static str {
        "noting"
    }
}

#[test]
fn the_loop_gives_way_to_turns_that_find_a_little_work() {
    let (journal, idles) = (Journal::default(), Journal::default());
    let script = [1, 0, 0, 0, 3, 3, 3, 4];
    let mut agent = shared(&journal, script.map(Ok));
    let turns = agent.turns();
    let mut idle = turns.giving_way(Box::new(NotingIdle(idles.clone())), 6);
    agent.on_start().unwrap();
    assert_eq!(idle.alias(), "noting");

    assert_eq!(turns.take(), 1);
    idle.idle(agent.do_work().unwrap());
    assert_eq!(
        idles.take(),
        ["reset"],
        "turns found work: the loop parks instead of idling"
    );
    assert_eq!(turns.take(), 0);
    idle.idle(agent.do_work().unwrap());
    assert_eq!(idles.take(), ["idle 0"]);

    // Turn and loop both find work.
    assert_eq!(turns.take(), 3);
    idle.idle(agent.do_work().unwrap());
    assert_eq!(
        idles.take(),
        ["reset"],
        "little work: the loop parks and leaves the processor to the turns"
    );
    assert_eq!(turns.take(), 3);
    idle.idle(agent.do_work().unwrap());
    assert_eq!(
        idles.take(),
        ["idle 7"],
        "more work than the limit: the loop does not park"
    );
}
