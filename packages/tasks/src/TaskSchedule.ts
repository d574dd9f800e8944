/**
 * A schedule of a task among the definitions of a server.
 *
 * @example
 * const Server = McpServer.layer(
 *   { name: "office", version: "1.0.0" },
 *   Task.layer(report, writeReport),
 *   TaskSchedule.layer("nightly report", report, { cron: "0 2 * * *", timeZone: "Europe/Berlin" }),
 *   Tasks.layer()
 * ).pipe(Layer.provide(SqliteTasks.layer({ filename: "tasks.db" })))
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { Catalog } from "@skein/server/Catalog"
import * as Extension from "@skein/server/Extension"
import type * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { awaitStore } from "./internal/engine/engineContext.ts"
import { checkSchedule } from "./internal/engine/scheduleTimes.ts"
import { makeTask } from "./internal/protocol/applicationTask.ts"
import type { TaskError } from "./TaskError.ts"
import { TaskSchedules, type TimeOptions } from "./TaskSchedules.ts"
import type { Owner } from "./TaskState.ts"

/** The options of a schedule among the definitions of a server. */
export interface Options extends TimeOptions {
  /** The arguments of the task, as a client sends them. Default `{}`. */
  readonly args?: JsonObject | undefined
  /**
   * The owner of its tasks. Default `null`: every caller that has the id of a task sees it. Operators see all tasks with
   * `TaskAdmin`.
   */
  readonly owner?: Owner | undefined
  /**
   * The name of an argument that receives the time for which a task is started, as an ISO 8601 text in UTC, in place of
   * the value in `args`. Default: no argument.
   */
  readonly timeArgument?: string | undefined
}

/**
 * Schedules a task: one of the definitions of a server, beside `Task.layer` and `Tasks.layer`. It stores the schedule
 * when the server starts. Fails with `InvalidOption` like `TaskSchedules.set`.
 *
 * Its tasks have the pool, priority, time to live and limits of the task's definition. Their handlers cannot ask for
 * input, except with `inputFrom: "anyone"`. A task of `Task.layerPrepared` cannot be scheduled: it is a defect when the
 * server starts.
 *
 * A server that starts replaces the stored schedule, so a changed definition takes effect with the first process of a
 * deployment. While two versions of a program run, the one that has started last decides, and each time still has one
 * task. A definition that is left out stays stored: remove it with `TaskSchedules.remove`.
 *
 * @example
 * const nightly = TaskSchedule.layer("nightly report", report, {
 *   cron: "0 2 * * *",
 *   timeZone: "Europe/Berlin",
 *   args: { customer: "Acme" },
 *   overlap: "skip"
 * })
 */
export const layer = <Name extends string, Input, Output>(
  name: string,
  task: Tool.Tool<Name, Input, Output>,
  options: Options
): Layer.Layer<never, TaskError, Catalog | TaskSchedules> =>
  Extension.effect(Effect.gen(function*() {
    yield* checkSchedule(name, options)
    const schedules = yield* TaskSchedules
    const catalog = yield* Catalog
    return {
      name: `schedule ${name}`,
      ready: Effect.suspend(() => {
        const { args = {}, owner = null, timeArgument, ...times } = options
        const made = makeTask(catalog, { tool: task.name, args, owner })
        return Result.isFailure(made)
          ? unscheduled(name, made.failure)
          : Effect.asVoid(awaitStore(schedules.set(name, { ...times, timeArgument, task: made.success })))
      })
    }
  }))

const unscheduled = (name: string, problem: string) =>
  Effect.die(new Error(`the schedule "${name}" cannot start tasks: ${problem}`))
