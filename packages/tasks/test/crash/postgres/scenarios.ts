/**
 * All scenarios, by topic.
 */
import { whileCancelled, whileEnded, whileSubmitted } from "./betweenCommits.ts"
import type { Fleet } from "./fleet.ts"
import { gently, questions, waiting, whileUndoing } from "./handovers.ts"
import { outage } from "./outages.ts"
import { frozen, severed, zombie } from "./zombies.ts"

/** A scenario, and whether the short run has it, too. */
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
  {
    says: "the front server killed between the table and the engine, while it submits",
    short: true,
    run: whileSubmitted
  },
  {
    says: "the front server killed between the table and the engine, while it cancels",
    short: true,
    run: whileCancelled
  },
  { says: "a worker killed between the table and the engine, while a task ends", short: true, run: whileEnded },
  { says: "the front server killed while calls wait", run: waiting },
  { says: "the database restarted at once", short: true, run: (fleet) => outage(fleet, "restart") },
  { says: "the database killed, and gone for three seconds", run: (fleet) => outage(fleet, 3000) },
  { says: "a question asked before everybody was killed, answered after it, elsewhere", short: true, run: questions }
]
