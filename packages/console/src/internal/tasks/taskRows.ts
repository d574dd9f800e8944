/**
 * The rows of tasks: those that have not ended, those that have failed, and the events of their logs.
 */
import * as TraceContext from "@skein/protocol/TraceContext"
import {
  type ExecutingStep,
  type InspectedTask,
  isSlow,
  type ListedTask,
  type LoggedEvent,
  type TaskPlace
} from "@skein/tasks/TaskAdmin"
import type { ListPosition, State } from "@skein/tasks/TaskState"
import type { Action, Node, Page, State as NodeState } from "../../ConsoleSource.ts"

/** The ids of the groups. */
export const groups = { live: "tasks", failed: "failed", stopped: "stopped" } as const

/** The beginnings of the ids of tasks, by their group. */
export const prefixes = { live: "task/", failed: "failed/", stopped: "stopped/" } as const

/** The names of the actions of tasks. */
export const actionNames = { wake: "wake", settle: "settle", rerun: "rerun", rerunFrom: "rerunFrom" } as const

/** The position of a task in the listing of its group. */
export const toPosition = ({ state: { createdAt, id } }: ListedTask): string => `${createdAt} ${id}`

/** The position that {@link toPosition} has written. */
export const fromPosition = (position: string | undefined): ListPosition | undefined => {
  const [createdAt, id] = (position ?? "").split(" ")
  return id === undefined ? undefined : { createdAt: Number(createdAt), id }
}

const waitsFor = ({ place, state }: ListedTask, now: number): string | undefined =>
  state.status === "input_required"
    ? "an answer"
    : place._tag === "Ready"
    ? place.heldBy === "pause"
      ? "its tool, which is paused"
      : place.heldBy === "limit"
      ? "the limits of its tool"
      : "a worker"
    : place._tag === "Waiting" && place.events.length > 0
    ? `the event ${place.events.join(", ")}`
    : place._tag === "Running" && place.steps.length > 0
    ? place.steps.map((step) => `step ${step.name}${isSlow(step, now) ? ", which is slow" : ""}`).join(", ")
    : place._tag === "Waiting" && place.until !== undefined
    ? `its timer, until ${new Date(place.until).toISOString()}`
    : undefined

const stateOf = (place: TaskPlace): NodeState =>
  place._tag === "Running" ? "running" : place._tag === "Ready" ? "queued" : "waiting"

const labelOf = ({ id, tool }: State): string => `${tool} ${id.slice(0, 8)}…`

const traceIdOf = ({ caller }: State): string | undefined => TraceContext.parseParent(caller.traceparent)?.traceId

const wake: Action = { name: actionNames.wake, label: "Check now" }

/** The process that runs a task, and the steps that take long. */
const runningDetails = (
  { process, steps, worker }: Extract<TaskPlace, { readonly _tag: "Running" }>,
  now: number
): NonNullable<Node["details"]> => ({
  worker,
  ...process === undefined ? {} : {
    host: process.host,
    ...process.pid === undefined ? {} : { pid: process.pid },
    ...process.application === undefined ? {} : { application: process.application }
  },
  ...steps.length === 0 ? {} : {
    steps: steps.map((step) => {
      const { attempt, medianMs, name, startedAt } = step
      const slow = isSlow(step, now) ? `: slow, its median is ${medianMs} ms` : ""
      return `${name}${attempt > 1 ? `, attempt ${attempt}` : ""}, since ${new Date(startedAt).toISOString()}${slow}`
    }).join("; ")
  }
})

/** A task that has not ended. */
export const liveNode = (now: number) => (task: ListedTask): Node => {
  const { events, place, state } = task
  const total = events + (state.status === "input_required" ? 1 : 0) +
    (place._tag === "Running" ? place.steps.length : 0)
  return {
    id: prefixes.live + state.id,
    parent: groups.live,
    kind: "task",
    label: labelOf(state),
    state: stateOf(place),
    waitsFor: waitsFor(task, now),
    since: state.createdAt,
    progress: state.progress,
    principal: state.owner ?? undefined,
    traceId: traceIdOf(state),
    canInterrupt: true,
    ...place._tag === "Waiting" ? { actions: [wake] } : {},
    details: {
      id: state.id,
      pool: state.pool,
      ...place._tag === "Running" ? runningDetails(place, now) : {},
      ...place._tag === "Settled" ? {} : { runs: place.runs, "lost workers": place.attempts },
      ...Object.keys(task.labels).length === 0
        ? {}
        : { labels: Object.entries(task.labels).map(([name, value]) => `${name}=${value}`).join(", ") },
      ...state.statusMessage === undefined ? {} : { message: state.statusMessage }
    },
    ...total === 0 ? {} : { more: { total, after: start } }
  }
}

const settle: Action = {
  name: actionNames.settle,
  label: "End as it is",
  confirm:
    "The task is cancelled if it has not ended. Compensations that the code of its workers does not reach never " +
    "run: undo their effects by hand."
}

/** A task that needs attention: it waits for other code, and nothing of it is undone. */
export const stoppedNode = (now: number) => (task: ListedTask): Node => ({
  ...liveNode(now)(task),
  id: prefixes.stopped + task.state.id,
  parent: groups.stopped,
  state: "failed",
  waitsFor: "other code, or an operator",
  canInterrupt: false,
  actions: [settle]
})

const rerun: Action = {
  name: actionNames.rerun,
  label: "Run again",
  confirm:
    "A new task with the same owner and arguments runs from the beginning. Its steps have new idempotency keys: " +
    "effects of the failed task happen again. The failed task stays as it is."
}

/** Whether a task has failed: with an error of the protocol, or with a result that has `isError`. */
export const hasFailed = ({ isError, status }: State): boolean => status === "failed" || isError

/**
 * A task that has failed. `state.statusMessage` is the message of its error. A result with `isError`, such as that of a person
 * who declined, is not called a failure, as in the commands of the command line.
 */
export const failedNode = ({ events, state }: ListedTask): Node => ({
  id: prefixes.failed + state.id,
  parent: groups.failed,
  kind: "task",
  label: labelOf(state),
  state: state.status === "failed" ? "failed" : "completed (error)",
  summary: state.statusMessage,
  since: state.createdAt,
  progress: state.progress,
  principal: state.owner ?? undefined,
  traceId: traceIdOf(state),
  actions: [rerun],
  details: {
    // The list cuts it off.
    ...state.statusMessage === undefined ? {} : { reason: state.statusMessage },
    id: state.id,
    pool: state.pool,
    "failed at": new Date(state.updatedAt).toISOString()
  },
  ...events === 0 ? {} : { more: { total: events, after: start } }
})

/** The position before the log of a task. */
export const start = "0"

/** Whether an event ends a timer: it has fired, or it was that of a question which is closed. */
const endsTimer = ({ kind, name }: LoggedEvent, timer: string): boolean =>
  kind === "fired" ? name === timer : (kind === "answer" || kind === "timeout") && `timeout/${name}` === timer

const eventLabel = ({ attempt, kind, name }: LoggedEvent): string => {
  switch (kind) {
    case "emit":
      return `item ${attempt} of its output`
    case "step":
      return name
    case "giveUp":
      return `given up after ${name} lost workers`
    case "undo":
      return "compensations begin"
    case "stopped":
      return `stopped, because ${name}`
    case "patched":
      return `with the change ${name}`
    case "unpatched":
      return `without the change ${name}`
    case "section":
      return `the section ${name}, which a cancellation waits for`
    case "settled":
      return "settled by an operator"
    case "continued":
      return "began again with other arguments"
    default:
      return `${kind} ${name}`
  }
}

/**
 * Whether a failed task can run again from an event: a step of its work. A step of its compensations is not, since the
 * new task would have the results of all steps before.
 */
export const canRerunFrom = (log: ReadonlyArray<LoggedEvent>, { kind, seq }: LoggedEvent): boolean =>
  kind === "step" && !log.some((other) => other.kind === "undo" && other.seq < seq)

const rerunFrom = (log: ReadonlyArray<LoggedEvent>, step: string): Action => ({
  name: actionNames.rerunFrom,
  label: "Run again from here",
  confirm: `A new task begins at the step ${step}, with the recorded results of the steps before it. The steps from ` +
    "there have new idempotency keys: their effects happen again." +
    (log.some(({ kind }) => kind === "undo")
      ? " The compensations of the failed task have begun: the effects of the steps before may be undone, and the new " +
        "task does not repeat them."
      : "")
})

/** A step that runs, with its last heartbeat. */
const runningStep = (parent: string, now: number) => (step: ExecutingStep): Node => {
  const { attempt, heartbeat, medianMs, name, startedAt } = step
  return {
    id: `${parent}/running/${name}`,
    parent,
    kind: "step",
    label: name,
    state: "running",
    summary: isSlow(step, now) ? `slow: its median is ${medianMs} ms` : undefined,
    since: startedAt,
    details: {
      attempt,
      ...heartbeat === undefined ? {} : {
        heartbeat: new Date(heartbeat.at).toISOString(),
        ...heartbeat.details === undefined ? {} : { "heartbeat details": heartbeat.details }
      }
    }
  }
}

/** The rows of the log of a task after a position, and after its end those of the open questions and of the steps that run. */
export const toLogPage = (
  parent: string,
  { log, place, questions, state }: InspectedTask,
  now: number,
  after: string,
  limit: number
): Page => {
  const rest = log.filter(({ seq }) => seq > Number(after))
  const events = rest.slice(0, limit)
  const nodes = [
    ...events.map((event): Node => {
      const { at, attempt, failed, kind, name, seq, startedAt, value } = event
      const isSet = kind === "timer" && !hasFailed(state) && !log.some((other) => endsTimer(other, name))
      return {
        id: `${parent}/${seq}`,
        parent,
        kind: kind === "answer" || kind === "timeout" ? "question" : "step",
        label: eventLabel(event),
        state: failed === true || kind === "giveUp" ? "failed" : isSet ? "waiting" : "done",
        waitsFor: isSet ? `its time, ${new Date(at).toISOString()}` : undefined,
        // The time of a timer is its end.
        since: kind === "timer" ? undefined : startedAt ?? at,
        ...hasFailed(state) && canRerunFrom(log, event) ? { actions: [rerunFrom(log, name)] } : {},
        details: {
          ...kind === "step" ? { attempt, milliseconds: at - (startedAt ?? at) } : {},
          ...value === undefined ? {} : { record: value }
        }
      }
    }),
    ...(rest.length > limit ? [] : questions).map(({ key, method, to }): Node => ({
      id: `${parent}/question/${key}`,
      parent,
      kind: "question",
      label: method,
      state: "waiting",
      waitsFor: to === undefined ? "an answer" : `an answer of ${to}`
    })),
    ...rest.length > limit || place._tag !== "Running" ? [] : place.steps.map(runningStep(parent, now))
  ]
  // A viewer asks for the events that follow later.
  return { nodes, after: String(events.at(-1)?.seq ?? after) }
}
