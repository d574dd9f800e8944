/** The types of `skein/tasks` and those of `@skein/tasks`, in the direction in which the values flow. */
import { describe, expectTypeOf, it } from "@effect/vitest"
import type * as AsyncTasks from "@skein/tasks/AsyncTasks"
import type * as Encryption from "@skein/tasks/Encryption"
import type * as MemoryTasks from "@skein/tasks/MemoryTasks"
import type * as PostgresTasks from "@skein/tasks/PostgresTasks"
import type * as SqliteTasks from "@skein/tasks/SqliteTasks"
import type * as CoreTask from "@skein/tasks/Task"
import type * as CoreAdmin from "@skein/tasks/TaskAdmin"
import type * as CoreContext from "@skein/tasks/TaskContext"
import type * as CoreExport from "@skein/tasks/TaskExport"
import type * as CoreError from "@skein/tasks/TaskError"
import type * as CoreSchedule from "@skein/tasks/TaskSchedule"
import type * as CoreSchedules from "@skein/tasks/TaskSchedules"
import type * as CoreState from "@skein/tasks/TaskState"
import type * as CoreTools from "@skein/tasks/TaskTools"
import type * as CoreTasks from "@skein/tasks/Tasks"
import type * as skein from "skein/tasks"

/** The members of an option type that the other one lacks. */
type Lacking<A, B> = Exclude<keyof A, keyof B>

describe("values that the program gives", () => {
  it("options of stores are those of the engines", () => {
    type Given<A> = Omit<A, "encryption">
    expectTypeOf<Given<skein.TaskStoreOptions>>().toExtend<MemoryTasks.Options>()
    expectTypeOf<Lacking<MemoryTasks.Options, skein.TaskStoreOptions>>().toEqualTypeOf<never>()
    expectTypeOf<Given<skein.SqliteTasksOptions>>().toExtend<SqliteTasks.Options>()
    expectTypeOf<Lacking<SqliteTasks.Options, skein.SqliteTasksOptions>>().toEqualTypeOf<never>()
    expectTypeOf<Omit<skein.PostgresTasksOptions, "encryption" | "ssl">>().toExtend<PostgresTasks.Options>()
    // Names are changed for statements of the application only, and skein/tasks has none but those of transactions.
    expectTypeOf<Lacking<PostgresTasks.Options, skein.PostgresTasksOptions>>().toEqualTypeOf<
      "transformQueryNames" | "transformResultNames"
    >()
    expectTypeOf<skein.TaskKeys>().toExtend<Encryption.Options>()
  })

  it("options of tasks are those of Task.make and Tasks.layer", () => {
    type Functions =
      | "input"
      | "output"
      | "visible"
      | "listedAs"
      | "owner"
      | "labels"
      | "priority"
      | "queueKey"
      | "retry"
      | "singleton"
      | "debounce"
      | "asTask"
      | "prepare"
    type Options = CoreTask.Options<{}, never>
    expectTypeOf<Omit<skein.TaskOptions, Functions>>().toExtend<Omit<Options, Functions>>()
    // `metadata` is a context of Effect.
    expectTypeOf<Lacking<Options, skein.TaskOptions>>().toEqualTypeOf<"metadata">()
    expectTypeOf<Omit<skein.TasksOptions, "addresses" | "owner" | "immediateResponse">>().toExtend<
      Omit<CoreTasks.Options, "addresses" | "owner" | "immediateResponse">
    >()
    expectTypeOf<Lacking<CoreTasks.Options, skein.TasksOptions>>().toEqualTypeOf<never>()
    expectTypeOf<Omit<skein.TaskToolsOptions, "visible">>().toExtend<Omit<CoreTools.Options, "visible">>()
    expectTypeOf<skein.StartOptions>().toExtend<AsyncTasks.StartOptions>()
    expectTypeOf<keyof skein.StartOptions>().toEqualTypeOf<keyof AsyncTasks.StartOptions>()
    expectTypeOf<skein.WaitOptions>().toEqualTypeOf<AsyncTasks.WaitOptions>()
  })

  it("schedules, filters and retries are those of the services", () => {
    expectTypeOf<skein.ScheduleOptions>().toExtend<CoreSchedule.Options>()
    expectTypeOf<Lacking<CoreSchedule.Options, skein.ScheduleOptions>>().toEqualTypeOf<never>()
    expectTypeOf<skein.ScheduleDefinition>().toExtend<CoreSchedules.Definition>()
    expectTypeOf<skein.TaskFilter>().toEqualTypeOf<CoreAdmin.TaskFilter>()
    expectTypeOf<skein.StepRetry>().toExtend<CoreContext.Retry>()
    expectTypeOf<keyof skein.StepRetry>().toEqualTypeOf<keyof CoreContext.Retry>()
  })
})

describe("values that the program receives", () => {
  it("states are those of the engine", () => {
    type Rest<A> = Omit<A, "outcome">
    expectTypeOf<Rest<CoreState.State>>().toExtend<Rest<skein.TaskState>>()
    expectTypeOf<keyof skein.TaskState>().toEqualTypeOf<keyof CoreState.State>()
    // The results of tools are those of the newest revision.
    expectTypeOf<skein.TaskOutcome["_tag"]>().toEqualTypeOf<CoreState.Outcome["_tag"]>()
    expectTypeOf<CoreSchedules.Schedule>().toExtend<skein.Schedule>()
    expectTypeOf<keyof skein.Schedule>().toEqualTypeOf<keyof CoreSchedules.Schedule>()
    expectTypeOf<CoreError.Reason["_tag"]>().toEqualTypeOf<skein.TaskErrorReason["_tag"]>()
  })

  it("the services have the same methods and results", () => {
    expectTypeOf<keyof skein.TaskAdmin>().toEqualTypeOf<keyof AsyncTasks.AsyncTaskAdmin>()
    expectTypeOf<keyof skein.TaskSchedules>().toEqualTypeOf<keyof AsyncTasks.AsyncTaskSchedules>()
    expectTypeOf<CoreAdmin.TaskPlace>().toEqualTypeOf<skein.TaskPlace>()
    expectTypeOf<CoreAdmin.LoggedEvent>().toEqualTypeOf<skein.LoggedEvent>()
    expectTypeOf<CoreAdmin.WorkerState>().toEqualTypeOf<skein.WorkerState>()
    expectTypeOf<CoreAdmin.ToolState>().toEqualTypeOf<skein.ToolState>()
    expectTypeOf<CoreAdmin.Statistics>().toExtend<skein.TaskStatistics>()
    expectTypeOf<CoreAdmin.CodeCheck>().toExtend<skein.CodeCheck>()
    expectTypeOf<CoreExport.ExportedQuestion>().toEqualTypeOf<skein.ExportedQuestion>()
    expectTypeOf<CoreExport.ExportedEvent>().toEqualTypeOf<skein.ExportedEvent>()
    expectTypeOf<CoreExport.Replay>().toEqualTypeOf<skein.TaskReplay>()
    expectTypeOf<keyof CoreExport.ExportedTask>().toEqualTypeOf<keyof skein.ExportedTask>()
    expectTypeOf<keyof CoreExport.ExportedTask["task"]>().toEqualTypeOf<keyof skein.ExportedTask["task"]>()
    expectTypeOf<keyof CoreAdmin.ListedTask>().toEqualTypeOf<keyof skein.ListedTask>()
    expectTypeOf<keyof CoreAdmin.InspectedTask>().toEqualTypeOf<keyof skein.InspectedTask>()
    type Reads =
      | "admin"
      | "schedules"
      | "wait"
      | "watch"
      | "get"
      | "list"
      | "readOutput"
      | "followOutput"
      | "questionsFor"
      | "query"
    type OfSkein = Reads | "startWorker" | "start" | "submit" | "cancel" | "answer" | "send" | "sendAll" | "expireSoon"
    expectTypeOf<Exclude<keyof AsyncTasks.AsyncTasks, "layer">>().toEqualTypeOf<OfSkein>()
    expectTypeOf<OfSkein>().toExtend<keyof skein.Tasks>()
  })

  it("the context of a handler has the same members, except for those of Effect", () => {
    expectTypeOf<Exclude<keyof CoreContext.TaskContext, keyof skein.TaskContext>>().toEqualTypeOf<"run">()
    expectTypeOf<Exclude<keyof skein.TaskContext, keyof CoreContext.TaskContext>>().toEqualTypeOf<never>()
    expectTypeOf<CoreContext.RunningStep>().toEqualTypeOf<skein.RunningStep>()
    expectTypeOf<CoreContext.Sql>().toEqualTypeOf<skein.Sql>()
    expectTypeOf<CoreContext.TaskContext["sleep"]>().toExtend<skein.TaskContext["sleep"]>()
    expectTypeOf<CoreContext.TaskContext["continueWith"]>().toEqualTypeOf<skein.TaskContext["continueWith"]>()
  })
})
