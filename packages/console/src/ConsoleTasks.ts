/**
 * The tasks of an engine as rows of the console: those that have not ended, with what each waits for, and their logs and
 * open questions on request. Interrupting a row cancels its task, and its compensations run.
 *
 * The rows have no arguments and results. With `showPayloads` a step shows its record, which may hold data of users.
 *
 * @example
 * const Program = Console.layer().pipe(
 *   Layer.provide(ConsoleTasks.layer),
 *   Layer.provide([ConsoleSource.ConsoleSources.layer, SqliteTasks.layer({ filename: "tasks.db" })])
 * )
 */
import * as TraceContext from "@skein/protocol/TraceContext"
import { type InspectedTask, type ListedTask, TaskAdmin, type TaskPlace } from "@skein/tasks/TaskAdmin"
import type { ListPosition } from "@skein/tasks/TaskState"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ConsoleSource from "./ConsoleSource.ts"

const group = "tasks"
const taskPrefix = "task/"

/** The tasks that have not ended. A cancelled task that compensates is not among them. */
const live = ["working", "input_required"] as const

const toPosition = ({ state: { createdAt, id } }: ListedTask): string => `${createdAt} ${id}`

const fromPosition = (position: string | undefined): ListPosition | undefined => {
  const [createdAt, id] = (position ?? "").split(" ")
  return id === undefined ? undefined : { createdAt: Number(createdAt), id }
}

const waitsFor = ({ place, state }: ListedTask): string | undefined =>
  state.status === "input_required"
    ? "an answer"
    : place._tag === "Ready"
    ? place.heldBy === "pause"
      ? "its tool, which is paused"
      : place.heldBy === "limit"
      ? "the limits of its tool"
      : "a worker"
    : place._tag === "Waiting" && place.until !== undefined
    ? `its timer, until ${new Date(place.until).toISOString()}`
    : undefined

const stateOf = (place: TaskPlace): ConsoleSource.State =>
  place._tag === "Running" ? "running" : place._tag === "Ready" ? "queued" : "waiting"

const toNode = (task: ListedTask): ConsoleSource.Node => {
  const { events, place, state } = task
  const total = events + (state.status === "input_required" ? 1 : 0)
  return {
    id: taskPrefix + state.id,
    parent: group,
    kind: "task",
    label: `${state.tool} ${state.id.slice(0, 8)}…`,
    state: stateOf(place),
    waitsFor: waitsFor(task),
    since: state.createdAt,
    progress: state.progress,
    principal: state.owner ?? undefined,
    traceId: TraceContext.parseParent(state.caller.traceparent)?.traceId,
    canInterrupt: true,
    details: {
      pool: state.pool,
      ...place._tag === "Running" ? { worker: place.worker } : {},
      ...place._tag === "Settled" ? {} : { runs: place.runs, "lost workers": place.attempts },
      ...state.statusMessage === undefined ? {} : { message: state.statusMessage }
    },
    ...total === 0 ? {} : { more: { total, after: start } }
  }
}

/** The position before the log of a task. */
const start = "0"

/** Whether an event ends a timer: it has fired, or it was that of a question which is closed. */
const endsTimer = ({ kind, name }: InspectedTask["log"][number], timer: string): boolean =>
  kind === "fired" ? name === timer : (kind === "answer" || kind === "timeout") && `timeout/${name}` === timer

/** The rows of the log of a task after a position, and after its end those of the open questions. */
const toChildren = (
  id: string,
  { log, questions }: InspectedTask,
  after: string,
  limit: number
): ConsoleSource.Page => {
  const parent = taskPrefix + id
  const rest = log.filter(({ seq }) => seq > Number(after))
  const events = rest.slice(0, limit)
  const nodes = [
    ...events.map(({ at, attempt, failed, kind, name, seq, startedAt, value }): ConsoleSource.Node => {
      const isSet = kind === "timer" && !log.some((other) => endsTimer(other, name))
      return {
        id: `${parent}/${seq}`,
        parent,
        kind: kind === "answer" || kind === "timeout" ? "question" : "step",
        label: kind === "step" ? name : `${kind} ${name}`,
        state: failed === true ? "failed" : isSet ? "waiting" : "done",
        waitsFor: isSet ? `its time, ${new Date(at).toISOString()}` : undefined,
        // The time of a timer is its end.
        since: kind === "timer" ? undefined : startedAt ?? at,
        details: {
          ...kind === "step" ? { attempt, milliseconds: at - (startedAt ?? at) } : {},
          ...value === undefined ? {} : { record: value }
        }
      }
    }),
    ...(rest.length > limit ? [] : questions).map(({ key, method }): ConsoleSource.Node => ({
      id: `${parent}/question/${key}`,
      parent,
      kind: "question",
      label: method,
      state: "waiting",
      waitsFor: "an answer"
    }))
  ]
  // A viewer asks for the events that follow later.
  return { nodes, after: String(events.at(-1)?.seq ?? after) }
}

/**
 * Shows the tasks that have not ended, 200 by default (`maxChildren`); viewers ask for further ones. The number of all is
 * counted while somebody looks.
 *
 * @example
 * const Rows = Layer.provideMerge(ConsoleTasks.layer, ConsoleSource.ConsoleSources.layer)
 */
export const layer: Layer.Layer<never, never, ConsoleSource.ConsoleSources | TaskAdmin> = Layer.unwrap(
  Effect.map(TaskAdmin, (admin) =>
    ConsoleSource.layer({
      name: "tasks",
      read: ({ limit }) =>
        Effect.map(
          Effect.all([admin.list({ status: live }, { limit }), admin.statistics]),
          ([tasks, { tasks: counts }]) => {
            const total = counts.reduce(
              (sum, { count, status }) => live.some((one) => one === status) ? sum + count : sum,
              0
            )
            const last = tasks.at(-1)
            const more = last === undefined || total <= tasks.length ? {} : { more: { total, after: toPosition(last) } }
            return {
              nodes: [
                { id: group, kind: "group", label: "Tasks", state: total === 0 ? "idle" : "running", ...more },
                ...tasks.map(toNode)
              ]
            }
          }
        ),
      more: ({ after, limit, parent, showPayloads }) => {
        if (parent === group) {
          return Effect.map(admin.list({ status: live }, { limit, after: fromPosition(after) }), (tasks) => ({
            nodes: tasks.map(toNode),
            after: tasks.length < limit ? undefined : toPosition(tasks.at(-1)!)
          }))
        }
        const id = parent.slice(taskPrefix.length)
        return Effect.map(
          admin.inspect(id, { values: showPayloads }),
          (task) => task === undefined ? { nodes: [] } : toChildren(id, task, after ?? start, limit)
        )
      },
      interrupt: (id) =>
        id.startsWith(taskPrefix)
          ? admin.cancel(id.slice(taskPrefix.length), "Cancelled by an operator")
          : Effect.succeed(false)
    }))
)
