/**
 * Tasks: tools that take minutes or days and survive the end of their process, in memory, SQLite or PostgreSQL.
 *
 * @example
 * const buy = task("buy", { input: z.object({ tea: z.string() }) }, async ({ tea }, { step }) =>
 *   step("ship", ({ key }) => ship(tea, key)))
 * const shop = tasks(sqliteTasks({ filename: "tasks.db" }), [buy])
 * new AsyncServer({ name: "shop", version: "1.0.0" }).use(shop).runHttp({ port: 3000 })
 */
export type { PostgresOptions, SqliteOptions, TlsOptions } from "./internal/base/database.ts"
export type { EncryptionOptions, TaskCipher, TaskKeys } from "./internal/tasks/encryption.ts"
export * from "./internal/tasks/task.ts"
export type * from "./internal/tasks/taskAdmin.ts"
export type * from "./internal/tasks/taskAlerts.ts"
export type * from "./internal/tasks/taskContext.ts"
export * from "./internal/tasks/taskError.ts"
export type * from "./internal/tasks/taskExport.ts"
export * from "./internal/tasks/tasks.ts"
export * from "./internal/tasks/taskSchedule.ts"
export type * from "./internal/tasks/taskState.ts"
export * from "./internal/tasks/taskStore.ts"
