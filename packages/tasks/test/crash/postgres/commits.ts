/**
 * Kills at the commits of the engine. A process dies while one of its transactions commits: in one case the database
 * rolls it back, in the other it is committed, and its response is lost with the process.
 */
import { Caller, cancel, endOf } from "./caller.ts"
import type { RemoteTask } from "@skein/client/RemoteTask"
import type { Child } from "../child.ts"
import type { Fleet, Held, Traces } from "./fleet.ts"
import type { Gate } from "./tools.ts"
import { whole } from "./zombies.ts"

/** The outcome of the transaction. */
export type Fate = "rolled back" | "committed"

/** A commit, and a task that comes to it. */
export interface Commit {
  readonly says: string
  /** The process that dies. */
  readonly role: "front" | "worker"
  /** The change of a row. `NEW` and `OLD` are its values. */
  readonly held: (task: string) => Held
  readonly gates: ReadonlyArray<Gate>
  /** Whether the client accepts the question from the beginning. */
  readonly answers?: boolean
  /** Brings the task to the commit, once it is held. */
  readonly reach?: (fleet: Fleet, task: RemoteTask) => Promise<void>
  /** Continues after the kill. */
  readonly afterwards?: (fleet: Fleet, task: RemoteTask) => Promise<void>
  readonly end: "Let go" | "TaskCancelled"
}

export const undone: Traces = {
  outside: "one effect",
  "inside out": "one effect",
  inside: "committed once",
  undo: "committed once"
}

const openGate = (gate: Gate) => (fleet: Fleet, task: RemoteTask): Promise<void> => {
  fleet.outside.openForGood(`${task.id} ${gate}`)
  return Promise.resolve()
}

/** Cancels again and again: the response may be lost with its server. */
const cancelling = async (fleet: Fleet, task: RemoteTask): Promise<void> => {
  const tried = () => cancel(task).then(() => true, () => false)
  await fleet.eventually("cancelled", tried)
}

const log = (name: string) => (task: string): Held => ({
  table: "skein_task_log",
  event: "INSERT",
  when: `NEW.task_id = '${task}' AND NEW.name = '${name}'`
})

const queue = (when: string) => (task: string): Held => ({
  table: "skein_task_queue",
  event: "UPDATE",
  when: `NEW.task_id = '${task}' AND ${when}`
})

const tasks = (status: string) => (task: string): Held => ({
  table: "skein_tasks",
  event: "UPDATE",
  when: `NEW.id = '${task}' AND NEW.status = '${status}' AND OLD.status <> NEW.status`
})

/** All commits of a task after its submission. Each task waits at the first gate until the commit is held. */
export const commits: ReadonlyArray<Commit> = [
  {
    says: "the end of a step",
    role: "worker",
    held: log("outside"),
    gates: ["outside"],
    reach: openGate("outside"),
    end: "Let go"
  },
  {
    says: "a transactional step",
    role: "worker",
    held: log("inside"),
    gates: ["outside"],
    reach: openGate("outside"),
    end: "Let go"
  },
  {
    says: "the start of a timer",
    role: "worker",
    held: (task) => ({
      table: "skein_task_log",
      event: "INSERT",
      when: `NEW.task_id = '${task}' AND NEW.kind = 'timer'`
    }),
    gates: ["outside", "sleep"],
    reach: openGate("outside"),
    afterwards: cancelling,
    end: "TaskCancelled"
  },
  {
    says: "a question",
    role: "worker",
    held: (task) => ({ table: "skein_task_questions", event: "INSERT", when: `NEW.task_id = '${task}'` }),
    gates: ["outside", "question"],
    answers: true,
    reach: openGate("outside"),
    end: "Let go"
  },
  {
    says: "the suspension of a run",
    role: "worker",
    held: queue("NEW.state = 1"),
    gates: ["outside", "sleep"],
    reach: openGate("outside"),
    afterwards: cancelling,
    end: "TaskCancelled"
  },
  {
    says: "an answer",
    role: "front",
    held: (task) => ({ table: "skein_task_questions", event: "UPDATE", when: `NEW.task_id = '${task}'` }),
    gates: ["outside", "question"],
    answers: true,
    reach: openGate("outside"),
    end: "Let go"
  },
  {
    says: "the claim of a task that was answered",
    role: "worker",
    held: queue("NEW.state = 2"),
    gates: ["outside", "question"],
    answers: true,
    reach: openGate("outside"),
    end: "Let go"
  },
  {
    says: "a cancellation",
    role: "front",
    held: tasks("cancelled"),
    gates: ["sleep"],
    reach: (_, task) => {
      // The response is lost with the server.
      void cancel(task).catch(() => {})
      return Promise.resolve()
    },
    afterwards: cancelling,
    end: "TaskCancelled"
  },
  {
    says: "a transactional compensation",
    role: "worker",
    held: log("undo"),
    gates: ["sleep"],
    reach: cancelling,
    end: "TaskCancelled"
  },
  {
    says: "a compensation",
    role: "worker",
    held: log("inside out"),
    gates: ["sleep"],
    reach: cancelling,
    end: "TaskCancelled"
  },
  {
    says: "the settlement of a cancelled task",
    role: "worker",
    held: (task) => ({ table: "skein_task_queue", event: "DELETE", when: `OLD.task_id = '${task}'` }),
    gates: ["sleep"],
    reach: cancelling,
    end: "TaskCancelled"
  },
  {
    says: "the end of a task",
    role: "worker",
    held: tasks("completed"),
    gates: ["outside"],
    reach: openGate("outside"),
    end: "Let go"
  },
  {
    says: "the release of a task at a shutdown",
    role: "worker",
    held: queue("OLD.state = 2 AND NEW.state = 0"),
    gates: ["between"],
    reach: async (fleet, task) => {
      const gate = `${task.id} between`
      const pid = await fleet.outside.until(() => fleet.outside.at(gate)[0], "at its gate")
      fleet.workerOf(pid).process.kill("SIGTERM")
    },
    afterwards: openGate("between"),
    end: "Let go"
  }
]

/** Kills a process while it commits. Returns the process. */
const killAt = async (fleet: Fleet, what: string, fate: Fate, role: Commit["role"]): Promise<void> => {
  const { backend, pid } = await fleet.stuckAtHold(what)
  const died: Child = role === "front" ? fleet.front! : fleet.workerOf(pid)
  if (died.process.pid !== pid) throw new Error(`${what}: ${pid} commits it, and not the front server`)
  if (role === "front") await died.kill("SIGKILL")
  else await fleet.leave(died, "SIGKILL")
  if (fate === "rolled back") await fleet.query("SELECT pg_terminate_backend($1)", [backend])
}

/** Kills a process at a commit of a task, and checks that the task ends, and has acted once. */
export const killedAt = async (
  fleet: Fleet,
  { afterwards, answers = false, end, gates, held, reach, role, says }: Commit,
  fate: Fate
): Promise<void> => {
  const what = `killed at ${says}, ${fate}`
  const caller = await Caller.open(fleet.serverUrl, { answers })
  const task = await caller.start("held", { gates })
  fleet.describeStage = () => `${what}: task ${task.id}`
  // Questions are answered while it waits.
  const ended = endOf(task)
  const gate = `${task.id} ${gates[0]}`
  if (gates[0] === "sleep") await asleep(fleet, task.id, what)
  else await fleet.outside.until(() => fleet.outside.at(gate)[0], `${what}: at its gate`)
  const release = await fleet.hold(held(task.id))
  try {
    await reach?.(fleet, task)
    await killAt(fleet, what, fate, role)
  } finally {
    await release()
  }
  await (role === "front" ? fleet.openDoor() : fleet.join())
  await afterwards?.(fleet, task)
  fleet.same(`${what}: its end`, await ended, end)
  await fleet.settled(task.id, what)
  fleet.same(`${what}: its traces`, await fleet.traces(task.id), end === "Let go" ? whole : undone)
  fleet.same(`${what}: its reasons`, fleet.reasons(task.id), end === "Let go" ? [] : ["cancelled"])
  await caller.close()
}

/** Waits until the run of a task is suspended. */
export const asleep = (fleet: Fleet, task: string, what: string): Promise<void> =>
  fleet.eventually(`${what}: asleep`, async () => {
    const rows = await fleet.query("SELECT FROM skein_task_queue WHERE task_id = $1 AND state = 1", [task])
    return rows.length === 1
  })

const counted = (fleet: Fleet) =>
  fleet.query<Readonly<Record<string, string>>>(
    `SELECT (SELECT count(*) FROM skein_tasks) AS tasks, (SELECT count(*) FROM skein_task_queue) AS queued,
       (SELECT SUM(retained) FROM skein_task_counters WHERE kind = 0) AS retained`
  )

/**
 * The front server is killed while it submits. Either there is no task and the counters do not include one, or it runs
 * to its end although no client knows it.
 */
export const killedAtSubmission = async (fleet: Fleet, fate: Fate): Promise<void> => {
  const what = `killed at a submission, ${fate}`
  const before = await counted(fleet)
  const known = await fleet.query<{ id: string }>("SELECT id FROM skein_tasks")
  const caller = await Caller.open(fleet.serverUrl, { tasks: false })
  const release = await fleet.hold({ table: "skein_tasks", event: "INSERT", when: "NEW.tool = 'held'" })
  const called = caller.call("held", { gates: [] })
  try {
    await killAt(fleet, what, fate, "front")
  } finally {
    await release()
  }
  fleet.same(`${what}: the response`, await called, "Closed")
  await fleet.openDoor()
  if (fate === "rolled back") fleet.same(`${what}: the tables`, await counted(fleet), before)
  else {
    const found = await fleet.query<{ id: string }>("SELECT id FROM skein_tasks")
    const ids = found.map(({ id }) => id).filter((id) => !known.some((task) => task.id === id))
    fleet.same(`${what}: the number of new tasks`, ids.length, 1)
    for (const id of ids) {
      await fleet.settled(id, what)
      fleet.same(`${what}: its traces`, await fleet.traces(id), whole)
    }
  }
  await caller.close()
}

/** A worker is killed while it registers. The others continue, and nothing of it remains. */
export const killedAtRegistration = async (fleet: Fleet, fate: Fate): Promise<void> => {
  const what = `killed at the registration of a worker, ${fate}`
  const registered = async () =>
    Number((await fleet.query<{ count: string }>("SELECT count(*) FROM skein_task_workers"))[0]!.count)
  await fleet.eventually(`${what}: registered before`, async () => await registered() === fleet.workers.size)
  const release = await fleet.hold({ table: "skein_task_workers", event: "INSERT", when: "TRUE" })
  const started = fleet.startProcess("worker")
  try {
    const { backend, pid } = await fleet.stuckAtHold(what)
    fleet.same(`${what}: its process`, pid, started.process.pid)
    await started.kill("SIGKILL")
    if (fate === "rolled back") await fleet.query("SELECT pg_terminate_backend($1)", [backend])
  } finally {
    await release()
  }
  const caller = await Caller.open(fleet.serverUrl)
  fleet.same(`${what}: a task`, await endOf(await caller.start("held", { gates: [] })), "Let go")
  await fleet.eventually(`${what}: registered after`, async () => await registered() === fleet.workers.size)
  await caller.close()
}

/**
 * The renewal of a lease takes longer than the lease. Others continue the tasks of the worker, which registers again,
 * and nothing acts twice.
 */
export const lateRenewal = async (fleet: Fleet): Promise<void> => {
  const what = "a renewal that takes longer than the lease"
  const { outside } = fleet
  const caller = await Caller.open(fleet.serverUrl)
  const task = await caller.start("held", { gates: ["between"] })
  const gate = `${task.id} between`
  const old = await outside.until(() => outside.at(gate)[0], what)
  const [row] = await fleet.query<{ worker: string }>("SELECT worker FROM skein_task_queue WHERE task_id = $1", [
    task.id
  ])
  const release = await fleet.hold({
    table: "skein_task_workers",
    event: "UPDATE",
    when: `NEW.id = '${row!.worker}'`
  })
  try {
    const { pid } = await fleet.stuckAtHold(what)
    fleet.same(`${what}: the worker`, pid, old)
    await new Promise((resolve) => setTimeout(resolve, 3 * (fleet.leaseTimeout ?? 5000)))
  } finally {
    await release()
  }
  outside.openForGood(gate)
  fleet.same(`${what}: its end`, await endOf(task), "Let go")
  fleet.same(`${what}: its traces`, await fleet.traces(task.id), whole)
  await caller.close()
}
