/**
 * Where the tea house server stores its long tasks.
 */
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import type { TaskAdmin } from "@skein/tasks/TaskAdmin"
import type { TaskEngine } from "@skein/tasks/TaskEngine"
import type { TaskError } from "@skein/tasks/TaskError"
import type * as Layer from "effect/Layer"
import { mkdirSync } from "node:fs"
import { dirname, join, relative } from "node:path"

/** The command line options of the server. */
export interface Options {
  /** The path of a SQLite file. */
  readonly data?: string | undefined
  /** The URL of a PostgreSQL database, which several processes can share. */
  readonly postgres?: string | undefined
  readonly port: number
  readonly stdio: boolean
}

export interface TaskStorage {
  readonly tasks: Layer.Layer<TaskEngine | TaskAdmin, TaskError>
  /** A description for the welcome text. */
  readonly description: string
}

/** A file in a folder that git ignores, one per port: only one process at a time can run the tasks of a file. */
const fileOfPort = (port: number): string => join(import.meta.dirname, ".data", `tasks-${port}.db`)

const kill = `kill -9 ${process.pid}`

/**
 * The storage that the options ask for. The default is a file. On stdio and on a random port it is memory, because a
 * later run could not find the file.
 */
export const taskStorage = ({ data, port, postgres, stdio }: Options): TaskStorage => {
  if (postgres !== undefined) {
    const description = `Tasks are stored in PostgreSQL. Start a worker: npm run worker -- --postgres ${postgres}\n` +
      `Then kill the process that runs a task (this one: ${kill}). Another process continues the task.`
    return { tasks: PostgresTasks.layer({ url: postgres }), description }
  }
  const file = data ?? (stdio || port === 0 ? ":memory:" : fileOfPort(port))
  const tasks = SqliteTasks.layer({ filename: file })
  if (file === ":memory:") {
    return { tasks, description: "Tasks are stored in memory, and are lost when this process ends." }
  }
  mkdirSync(dirname(file), { recursive: true })
  const path = relative(process.cwd(), file)
  const description =
    `Tasks are stored in ${path}. Kill this process meanwhile (${kill}) and start it again: the task continues.`
  return { tasks, description }
}
