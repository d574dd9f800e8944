/**
 * All scenarios, by topic.
 */
import { commits, type Fate, killedAt, killedAtRegistration, killedAtSubmission, lateRenewal } from "./commits.ts"
import type { Fleet } from "./fleet.ts"
import { deploy, gently, questions, waiting, whileUndoing } from "./handovers.ts"
import { outage, starts } from "./outages.ts"
import { cancelledAfterFailure, cancelledBeforeFailure } from "./reasons.ts"
import { blocked, ties } from "./replays.ts"
import { frozen, severed, zombie } from "./zombies.ts"

/** A scenario, and whether the short runs have it, too. */
export interface Scene {
  readonly says: string
  readonly short?: boolean
  readonly run: (fleet: Fleet) => Promise<unknown>
}

const zombies = (["outside", "between", "inside"] as const).flatMap((where) =>
  (["zombie", "heir"] as const).map((first): Scene => ({
    says: `a worker stopped for longer than its tasks are kept for it, ${
      { outside: "in a step", between: "between two steps", inside: "in a transactional step" }[where]
    }, and then woken; the ${first} goes on first`,
    short: where === "inside" && first === "zombie",
    run: (fleet) => zombie(fleet, where, first)
  }))
)

/** Milliseconds after the start of a process: it connects after about a second. */
const moments = Array.from({ length: 12 }, (_, index) => 200 + index * 200)

const fates: ReadonlyArray<Fate> = ["rolled back", "committed"]

const killedAtCommits = fates.flatMap((fate): ReadonlyArray<Scene> => [
  {
    says: `the front server killed at the commit of a submission, which is ${fate}`,
    short: fate === "rolled back",
    run: (fleet) => killedAtSubmission(fleet, fate)
  },
  {
    says: `a worker killed at the commit of its registration, which is ${fate}`,
    run: (fleet) => killedAtRegistration(fleet, fate)
  },
  ...commits.map((commit): Scene => ({
    says: `a ${
      commit.role === "front" ? "front server" : "worker"
    } killed at the commit of ${commit.says}, which is ${fate}`,
    short: fate === "committed" && /the end of a task|a cancellation|a transactional step|an answer/.test(commit.says),
    run: (fleet) => killedAt(fleet, commit, fate)
  }))
])

/** All scenarios. */
export const scenes: ReadonlyArray<Scene> = [
  ...zombies,
  {
    says: "a worker stopped in the middle of a commit, which others wait for until the database ends it",
    short: true,
    run: (fleet) => frozen(fleet, false)
  },
  { says: "a worker stopped in the middle of a commit, and woken in time", run: (fleet) => frozen(fleet, true) },
  { says: "a connection lost in the middle of a transactional step", run: severed },
  { says: "SIGTERM to a worker in a step", run: (fleet) => gently(fleet, "outside") },
  { says: "SIGTERM to a worker between two steps", run: (fleet) => gently(fleet, "between") },
  { says: "SIGTERM to a worker in a transactional step", short: true, run: (fleet) => gently(fleet, "inside") },
  {
    says: "a worker killed while it undoes what was cancelled",
    short: true,
    run: (fleet) => whileUndoing(fleet, "SIGKILL")
  },
  { says: "SIGTERM to a worker while it undoes what was cancelled", run: (fleet) => whileUndoing(fleet, "SIGTERM") },
  ...killedAtCommits,
  { says: "a renewal that takes longer than the lease", run: lateRenewal },
  { says: "the front server killed while calls wait", run: waiting },
  { says: "the database restarted at once", short: true, run: (fleet) => outage(fleet, "restart") },
  { says: "the database killed, and gone for three seconds", run: (fleet) => outage(fleet, 3000) },
  { says: "a question asked before everybody was killed, answered after it, elsewhere", short: true, run: questions },
  {
    says: "SIGTERM to the front server under a waiting call with an open form",
    short: true,
    run: (fleet) => deploy(fleet, false)
  },
  {
    says: "SIGTERM to the front server under a session with an open form",
    short: true,
    run: (fleet) => deploy(fleet, true)
  },
  { says: "a task cancelled right before it fails", short: true, run: cancelledBeforeFailure },
  {
    says: "a task cancelled while it compensates its failure",
    short: true,
    run: (fleet) => cancelledAfterFailure(fleet)
  },
  {
    says: "a task cancelled while it compensates its failure, and its worker shut down then",
    run: (fleet) => cancelledAfterFailure(fleet, "SIGTERM")
  },
  {
    says: "a task cancelled while it compensates its failure, and its worker killed then",
    run: (fleet) => cancelledAfterFailure(fleet, "SIGKILL")
  },
  { says: "races at equal times", run: (fleet) => ties(fleet, 0, 100) },
  { says: "races with 200 ms of jitter", short: true, run: (fleet) => ties(fleet, 200, 40) },
  {
    says: "steps that block the event loop for longer than the lease",
    short: true,
    run: (fleet) => blocked(fleet, 5000)
  },
  {
    says: "the database restarted at every moment of the start of a worker",
    run: (fleet) => starts(fleet, "worker", moments)
  },
  {
    says: "the database restarted at every moment of the start of a front server",
    run: (fleet) => starts(fleet, "front", moments)
  }
]
