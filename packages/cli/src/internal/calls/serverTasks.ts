/**
 * Runs the commands of `skein tasks` on a server, over the protocol.
 */
import type * as Client from "@skein/client/Client"
import { ClientError, Unsupported } from "@skein/client/ClientError"
import { isObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import type { DetailedTask, Task, TaskStatus } from "@skein/protocol/Task"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { printResult } from "./call.ts"
import { format, onClient, requestTime, type ServerInvocation } from "../connection/connection.ts"
import { quoteName, taskStatus } from "../base/format.ts"
import { type CommandFailed, failed, type Process } from "../base/process.ts"
import type { Colors } from "../base/colors.ts"
import { cell, denseTable } from "../base/textTable.ts"
import { formatAge } from "../base/columns.ts"

/** The state of a task, in the form of either revision with tasks. */
type AnyTask = Task | DetailedTask

const isFinal = ({ status }: AnyTask): boolean => status !== "working" && status !== "input_required"

/** Fails with exit code 1 where the server does not have the task. */
const orUnknown = <A, R>(
  request: Effect.Effect<A, ClientError, R>,
  id: string
): Effect.Effect<A, ClientError | CommandFailed, R> =>
  Effect.catchIf(
    request,
    (error): error is ClientError => error instanceof ClientError,
    (error) => {
      const { reason } = error
      const isUnknown = reason._tag === "TaskNotFound" ||
        (reason._tag === "ProtocolError" && reason.error.code === -32602)
      return Effect.fail(isUnknown ? failed(1, `The server has no task ${quoteName(id)}`) : error)
    }
  )

/** The state of a task. A server that has created a task answers, even if it does not declare the capability. */
const stateOf = (client: Client.Client, id: string, line: ServerInvocation) =>
  orUnknown<AnyTask, never>(
    client.era === "stateless"
      ? client.request({ ...Method.GetTask, capability: undefined }, { taskId: id }, requestTime(line))
      : client.request({ ...Method.LegacyGetTask, capability: undefined }, { taskId: id }, requestTime(line)),
    id
  )

/** The age of a time of the server, if it can be read. */
const ageOf = (time: string, now: number): string => {
  const at = Date.parse(time)
  return Number.isFinite(at) ? formatAge(Math.max(0, now - at)) : ""
}

const taskList = (tasks: ReadonlyArray<AnyTask>, now: number, colors?: Colors): string =>
  tasks.length === 0 ? "There are no such tasks." : denseTable(
    ["ID", "STATUS", "AGE", "MESSAGE"],
    tasks.map(({ createdAt, status, statusMessage = "", taskId }) => [
      cell(taskId),
      status,
      ageOf(createdAt, now),
      cell(statusMessage)
    ]),
    colors
  )

const noListing = (revision: Revision.Revision): string =>
  `In ${revision} a server does not list its tasks: name a task by its id, with skein tasks show, or list with a session ` +
  `of ${Revision.latestSession}`

const notListed =
  "The server lists no tasks for this caller: name one with skein tasks show, or use --sqlite or --postgres"

/** How many pages of a listing are read: a server may never end it, or list no task with the status. */
const maxPages = 1_000

/** `skein tasks list`. It opens a session, as only 2025-11-25 has a listing. */
export const list = (
  line: ServerInvocation & { readonly limit: number; readonly status: ReadonlyArray<TaskStatus> }
): Effect.Effect<void, CommandFailed, Process> => {
  const { json, limit, revision, status } = line
  if (revision !== undefined && revision !== Revision.latestSession) {
    const report = Revision.era(revision) === "stateless" ? noListing(revision) : `${revision} has no tasks`
    return Effect.fail(failed(2, report))
  }
  return onClient(line, function*(client, { colors, print, warn }) {
    const found: Array<AnyTask> = []
    let cursor: string | undefined
    let pages = 0
    do {
      if (++pages > maxPages) {
        warn(`The server has more than ${maxPages} pages of tasks: those of further pages are not listed`)
        break
      }
      const page = yield* Effect.mapError(
        client.listTasksPage({ ...requestTime(line), cursor }),
        (error) =>
          error.reason._tag === "Unsupported"
            ? new ClientError({ reason: new Unsupported({ message: notListed, cause: error }) })
            : error
      )
      // Not `push(...tasks)`: a page can have more tasks than a call may have arguments.
      for (const task of page.tasks) if (status.length === 0 || status.includes(task.status)) found.push(task)
      cursor = page.nextCursor
    } while (cursor !== undefined && found.length < limit)
    const tasks = found.slice(0, limit)
    const now = yield* Clock.currentTimeMillis
    yield* json
      ? print(yield* format("tasks/list", () => JSON.stringify(tasks, undefined, 2)))
      : print(taskList(tasks, now, colors?.out), true)
  }, {
    client: { revisions: [Revision.latestSession] },
    negotiationAdvice: noListing(Revision.latest)
  })
}

/** A task in lines. */
const describe = (task: AnyTask, now: number): string => {
  const { createdAt, lastUpdatedAt, status, statusMessage = "", taskId, ttlMs } = task
  const questions = "inputRequests" in task ? Object.entries(task.inputRequests) : []
  const since = (time: string) => `${cell(time)}${ageOf(time, now) === "" ? "" : `, ${ageOf(time, now)} ago`}`
  const fields = [
    ["status", taskStatus(status, "result" in task && isObject(task.result) && task.result["isError"] === true)],
    ["message", cell(statusMessage)],
    ["created", since(createdAt)],
    ["changed", since(lastUpdatedAt)],
    ["kept for", ttlMs === null ? "" : formatAge(ttlMs)],
    ["error", "error" in task ? cell(task.error.message) : ""],
    ["asks for", questions.map(([key, { method }]) => `${cell(key)} (${cell(method)})`).join(", ")]
  ] as const
  const shown = fields.filter(([, value]) => value !== "")
  return [`task ${cell(taskId)}`, ...shown.map(([name, value]) => `  ${name.padEnd(8)}  ${value}`)].join("\n")
}

/** `skein tasks show`. */
export const show = (line: ServerInvocation, id: string): Effect.Effect<void, CommandFailed, Process> =>
  onClient(line, function*(client, { print }) {
    const task = yield* stateOf(client, id, line)
    const now = yield* Clock.currentTimeMillis
    yield* print(
      yield* format("tasks/get", () => line.json ? JSON.stringify(task, undefined, 2) : describe(task, now))
    )
  })

/** `skein tasks cancel`. */
export const cancel = (line: ServerInvocation, id: string): Effect.Effect<void, CommandFailed, Process> =>
  onClient(line, function*(client, { print }) {
    if (isFinal(yield* stateOf(client, id, line))) return yield* failed(1, "The task has ended already")
    const task = yield* client.resumeTask({ taskId: id }, requestTime(line))
    yield* task.cancel
    yield* print(
      line.json ? JSON.stringify({ id, cancelled: true }, undefined, 2) : "The server was asked to cancel the task."
    )
  })

/** `skein tasks wait`, and `skein tasks result`, which does not wait. */
export const result = (
  line: ServerInvocation,
  id: string,
  waits: boolean
): Effect.Effect<void, CommandFailed, Process> =>
  onClient(line, function*(client, console) {
    const state = yield* stateOf(client, id, line)
    if (!waits && !isFinal(state)) {
      const { status } = state
      return yield* failed(1, `The task has no result yet: its status is ${status}. skein tasks wait waits for it`)
    }
    const task = yield* client.resumeTask({ taskId: id }, { ...requestTime(line), leaveRunning: true })
    return yield* printResult("the task", yield* task.result, line.json, console)
  }, { keepsQuestions: true })
