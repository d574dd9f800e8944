/**
 * Invariants of orders after all of them have ended, however often their process was killed.
 */
import { DatabaseSync } from "node:sqlite"
import { asks, cancelled, kindOf, parcels } from "./orders.ts"
import type { Call } from "./outsideLog.ts"

/** The content of the orders database. */
export interface Found {
  readonly tasks: ReadonlyArray<Row>
  readonly ledger: ReadonlyArray<{ readonly task: string; readonly step: string }>
  readonly tally: number
  /** The counter of all tasks. */
  readonly counted: { readonly live: number; readonly retained: number }
  /** The number of tasks that the counter has to count. */
  readonly all: number
  /** The events that were not received, and the items of output, by their tasks. */
  readonly unreceived: ReadonlyArray<{ readonly task: string }>
  readonly output: ReadonlyArray<{ readonly task: string; readonly place: number; readonly value: string }>
  /** State 1 is answered. */
  readonly questions: ReadonlyArray<{ readonly task: string; readonly state: number }>
}

export interface Row {
  readonly id: string
  readonly status: string
  readonly args: string
  readonly outcome: string | null
}

/** The statements for `Found`. */
export const unreceived = "SELECT task_id AS task FROM skein_task_events WHERE value IS NOT NULL"
export const output = "SELECT task_id AS task, place, value FROM skein_task_output ORDER BY task_id, place"

/** Reads the file of a process that has ended. */
export const read = (file: string): Found => {
  const database = new DatabaseSync(file)
  try {
    const all = (sql: string): ReadonlyArray<unknown> => database.prepare(sql).all()
    const [counted] = all("SELECT live, retained FROM skein_task_counts WHERE kind = 0")
    return {
      tasks: all(
        "SELECT id, status, args, outcome FROM skein_tasks WHERE tool = 'order' ORDER BY created_at"
      ) as ReadonlyArray<Row>,
      all: (all("SELECT COUNT(*) AS count FROM skein_tasks")[0] as { readonly count: number }).count,
      unreceived: all(unreceived) as Found["unreceived"],
      output: all(output) as Found["output"],
      ledger: all("SELECT task, step FROM ledger") as Found["ledger"],
      tally: (all("SELECT count FROM tally")[0] as { readonly count: number }).count,
      counted: counted as Found["counted"],
      questions: all("SELECT task_id AS task, state FROM skein_task_questions") as Found["questions"]
    }
  } finally {
    database.close()
  }
}

/** Other numbers for the report. */
export interface Summary {
  readonly completed: number
  readonly failed: number
  readonly cancelled: number
  /** Steps whose effect came more than once, and was recognised by its key. */
  readonly repeated: number
  readonly problems: ReadonlyArray<string>
}

const plain = ["charge", "pack", "ship"]
const transactional = ["reserve", "book"]

/**
 * Checks all invariants. `acknowledged`: the tasks whose id a client received. `reportedCancelled`: the tasks that a
 * client received as cancelled.
 */
export const check = (
  { all, counted, ledger, output, questions, tally, tasks, unreceived }: Found,
  calls: Iterable<Call>,
  acknowledged: Iterable<string>,
  reportedCancelled: Iterable<string>
): Summary => {
  const problems: Array<string> = []
  const expect = (right: boolean, problem: () => string): void => void (right || problems.push(problem()))
  const count = { completed: 0, failed: 0, cancelled: 0 }

  const keys = new Map<string, Set<string>>()
  const times = new Map<string, number>()
  const owners = new Map<string, string>()
  for (const { key, step, task } of calls) {
    const name = `${task} ${step}`
    keys.set(name, (keys.get(name) ?? new Set()).add(key))
    times.set(name, (times.get(name) ?? 0) + 1)
    expect((owners.get(key) ?? name) === name, () => `two steps have one key: ${owners.get(key)} and ${name}`)
    owners.set(key, name)
  }
  const rows = new Map<string, number>()
  for (const { step, task } of ledger) rows.set(`${task} ${step}`, (rows.get(`${task} ${step}`) ?? 0) + 1)
  expect(tally === ledger.length, () => `${ledger.length} rows were written, and ${tally} counted`)

  const known = new Set(tasks.map(({ id }) => id))
  for (const id of acknowledged) expect(known.has(id), () => `${id} was acknowledged, and is not there`)
  const stopped = new Set(reportedCancelled)

  for (const { args, id, outcome, status } of tasks) {
    const { order } = JSON.parse(args) as { readonly order: number }
    const kind = kindOf(order)
    const about = `order ${order} (${kind}, ${status}, ${id})`
    const effects = (step: string): number => keys.get(`${id} ${step}`)?.size ?? 0
    const undoneAs = (reason: string, mayBeNone: boolean) => {
      const reasons = [...keys.get(`${id} reason`) ?? []]
      const right = reasons.length === 0 ? mayBeNone : reasons.every((key) => key === `${id} ${reason}`)
      expect(right, () => `${about}: it is undone for the reasons ${reasons}`)
    }
    const commits = (step: string): number => rows.get(`${id} ${step}`) ?? 0
    const one = (step: string, found: number) =>
      expect(found === 1, () => `${about}: the effect of ${step} is there ${found} times`)
    const none = (step: string, found: number) =>
      expect(found === 0, () => `${about}: ${step} must not have been, and was ${found} times`)
    const once = (step: string, found: number) =>
      expect(found <= 1, () => `${about}: the effect of ${step} is there ${found} times`)

    if (status === "cancelled") {
      count.cancelled++
      expect(cancelled(kind), () => `${about}: nobody has cancelled it`)
      for (const step of [...plain, "refund"]) once(step, effects(step))
      for (const step of [...transactional, "release"]) once(step, commits(step))
      // A reserved order was paid before: both are undone. An order that was not reserved may have been paid, or may
      // be in doubt.
      expect(commits("release") === commits("reserve"), () => `${about}: what was reserved is not released`)
      if (commits("reserve") > 0) one("refund", effects("refund"))
      expect(effects("refund") <= effects("charge"), () => `${about}: refunded, and never charged`)
      undoneAs("cancelled", effects("refund") === 0)
      const [load, unload] = [effects("load"), effects("unload")]
      expect(load === unload && load <= 1, () => `${about}: it was loaded ${load} times, and unloaded ${unload} times`)
      continue
    }
    expect(!stopped.has(id), () => `${about}: its cancellation was acknowledged`)
    expect(status === "completed", () => `${about}: it is not completed`)
    if (status !== "completed") continue
    for (const step of plain) one(step, effects(step))
    for (const step of transactional) one(step, commits(step))
    const { result } = JSON.parse(outcome ?? "{}") as { readonly result?: Record<string, unknown> }
    const text = JSON.stringify(result?.["content"])
    if (kind === "fails") {
      count.failed++
      expect(result?.["isError"] === true && text.includes("The parcel is lost"), () => `${about}: it says ${text}`)
      one("refund", effects("refund"))
      one("release", commits("release"))
      undoneAs("failed", false)
    } else {
      if (kind === "is paid") {
        for (const event of ["paid", "sent"]) one(`the event ${event}`, effects(event))
        none("an event that is not received", unreceived.filter(({ task }) => task === id).length)
      }
      if (kind === "has parcels") {
        for (const parcel of parcels) one(`parcel ${parcel}`, effects(`parcel ${parcel}`))
        const items = output.filter(({ task }) => task === id)
        const right = items.map(({ place, value }) => `${place} ${value}`).join() ===
          parcels.map((parcel, place) => `${place} "parcel ${parcel}"`).join()
        expect(right, () => `${about}: its output is ${JSON.stringify(items)}`)
      }
      if (kind === "cancelled while it moves") { for (const step of ["load", "unload"]) one(step, effects(step)) }
      if (kind === "races") one("the winner of the race", effects("winner"))
      count.completed++
      expect(text.includes(`Order ${order} is on its way`), () => `${about}: it says ${text}`)
      const states = questions.filter(({ task }) => task === id).map(({ state }) => state)
      expect(states.join() === (asks(kind) ? "1" : ""), () => `${about}: its questions are ${states}`)
      // Neither a shutdown nor a kill compensates.
      none("refund", effects("refund"))
      none("release", commits("release"))
    }
  }
  expect(counted.live === 0, () => `${counted.live} are counted as live`)
  expect(counted.retained === all, () => `${counted.retained} are counted, and ${all} are there`)
  // Each run writes down the winner of a race, and the reason of its compensations.
  const repeated =
    [...times].filter(([name, number]) =>
      !/ (?:winner|reason|paid|sent)$/.test(name) && number > (keys.get(name)?.size ?? 0)
    )
      .length
  return { ...count, repeated, problems }
}
