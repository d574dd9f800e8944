/** Each export of `@skein/tasks` and `@skein/sql` with its counterpart in `skein/tasks`. */
export const rows: ReadonlyArray<readonly [effect: string, skein: string | { readonly missing: string }]> = [
  ["@skein/tasks/AsyncTasks.AsyncTasks", "tasks"],
  ["@skein/tasks/AsyncTasks.openAdmin", "sqliteTasks().openAdmin"],
  ["@skein/tasks/CurrentTask", { missing: "the handler's context has its members: TaskContext" }],
  ["@skein/tasks/Encryption.Encryption", "sqliteTasks({ encryption: { encrypt, decrypt } })"],
  ["@skein/tasks/Encryption.make", { missing: "the option encryption of a store makes the cipher" }],
  ["@skein/tasks/Encryption.layer", "sqliteTasks({ encryption: { keys } })"],
  ["@skein/tasks/Encryption.layerConfig", {
    missing: "a program reads its variables itself: encryption: { keys: process.env.KEYS.split(\",\") }"
  }],
  ["@skein/tasks/MemoryTasks.layer", "memoryTasks"],
  ["@skein/tasks/PostgresTasks.layer", "postgresTasks"],
  ["@skein/tasks/PostgresTasks.layerAdmin", "postgresTasks().openAdmin"],
  ["@skein/tasks/PostgresTasks.migrate", "postgresTasks().migrate"],
  ["@skein/tasks/SqlTasks", { missing: "it needs the SqlClient of an application with Effect" }],
  ["@skein/tasks/SqliteTasks.layer", "sqliteTasks"],
  ["@skein/tasks/SqliteTasks.layerAdmin", "sqliteTasks().openAdmin"],
  ["@skein/tasks/SqliteTasks.migrate", "sqliteTasks().migrate"],
  ["@skein/tasks/SqliteTasks.backup", "sqliteTasks().backup"],
  ["@skein/tasks/Step.run", "TaskContext.step"],
  ["@skein/tasks/Step.sleep", "TaskContext.sleep"],
  ["@skein/tasks/Step.compensate", "TaskContext.compensate"],
  ["@skein/tasks/Step.withCompensation", "TaskContext.step({ compensate })"],
  ["@skein/tasks/Task.make", "task"],
  ["@skein/tasks/Task.async", "task"],
  ["@skein/tasks/Task.asyncPrepared", "task({ prepare })"],
  ["@skein/tasks/Task.layer", { missing: "its handler is an effect: task" }],
  ["@skein/tasks/Task.layerPrepared", { missing: "its handlers are effects: task({ prepare })" }],
  ["@skein/tasks/Task.add", "AsyncServer.add"],
  ["@skein/tasks/Task.replace", {
    missing: "remove the task with the function that AsyncServer.add returned, and add the other"
  }],
  ["@skein/tasks/Task.policy", { missing: "task takes these options, also for a handler without steps" }],
  ["@skein/tasks/Task.id", "TaskContext.taskId"],
  ["@skein/tasks/Task.setStatusMessage", "TaskContext.setStatusMessage"],
  ["@skein/tasks/Task.continueWith", "TaskContext.continueWith"],
  ["@skein/tasks/TaskAdmin", "tasks().admin"],
  ["@skein/tasks/TaskContext", "TaskContext"],
  ["@skein/tasks/TaskContext.StepError", "StepError"],
  ["@skein/tasks/TaskEngine", "tasks"],
  ["@skein/tasks/TaskError.TaskError", "TaskError"],
  ["@skein/tasks/TaskError.LimitExceeded", "TaskError.reason"],
  ["@skein/tasks/TaskError.StoreError", "TaskError.reason"],
  ["@skein/tasks/TaskError.FileLocked", "TaskError.reason"],
  ["@skein/tasks/TaskError.KeyError", "TaskError.reason"],
  ["@skein/tasks/TaskError.InvalidOption", "TaskError.reason"],
  ["@skein/tasks/TaskSchedule.layer", "taskSchedule"],
  ["@skein/tasks/TaskSchedules", "tasks().schedules"],
  ["@skein/tasks/TaskState.isFinal", { missing: "tasks().wait returns the final state" }],
  ["@skein/tasks/TaskTools.layer", "taskTools"],
  ["@skein/tasks/Tasks.layer", "tasks"],
  ["@skein/tasks/Tasks.withEngine", "tasks"],
  ["@skein/sql/PgClient", {
    missing: "a client of Effect: postgresTasks takes its options, and TaskContext.transaction runs SQL"
  }],
  ["@skein/sql/SqliteClient", {
    missing: "a client of Effect: sqliteTasks opens the file, and TaskContext.transaction runs SQL"
  }]
]
