/**
 * Where the tea house keeps its long tasks.
 */
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import type { TaskEngine } from "@skein/tasks/TaskEngine"
import type { TaskError } from "@skein/tasks/TaskError"
import type * as Layer from "effect/Layer"
import { mkdirSync } from "node:fs"
import { dirname, join } from "node:path"

/** Where, as this program was told. */
export interface Options {
  readonly data?: string | undefined
  readonly port: number
  readonly stdio: boolean
}

/** In this tree, in a folder that git ignores. Each port has its own: a file belongs to one process at a time. */
const byPort = (port: number): string => join(import.meta.dirname, ".data", `tasks-${port}.db`)

/** The file; none for a house that nobody would find again: on a port that is chosen anew each time, or as some client's child. */
export const fileOf = ({ data, port, stdio }: Options): string | undefined =>
  data ?? (stdio || port === 0 ? undefined : byPort(port))

export const tasks = (file: string | undefined): Layer.Layer<TaskEngine, TaskError> => {
  if (file === undefined) return SqliteTasks.layer({ filename: ":memory:" })
  mkdirSync(dirname(file), { recursive: true })
  return SqliteTasks.layer({ filename: file })
}
