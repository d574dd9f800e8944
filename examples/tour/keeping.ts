/**
 * Where the tea house keeps its long tasks.
 */
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import type { TaskEngine } from "@skein/tasks/TaskEngine"
import type { TaskError } from "@skein/tasks/TaskError"
import type * as Layer from "effect/Layer"
import { mkdirSync } from "node:fs"
import { dirname, join, relative } from "node:path"

/** Where, as this program was told. */
export interface Options {
  /** A SQLite file. */
  readonly data?: string | undefined
  /** The address of a PostgreSQL database, which others may work on too. */
  readonly postgres?: string | undefined
  readonly port: number
  readonly stdio: boolean
}

/** A place for tasks. */
export interface Place {
  readonly tasks: Layer.Layer<TaskEngine, TaskError>
  /** What people are told of it. */
  readonly told: string
}

/** In this tree, in a folder that git ignores. Each port has its own: a file belongs to one process at a time. */
const byPort = (port: number): string => join(import.meta.dirname, ".data", `tasks-${port}.db`)

const rude = `kill -9 ${process.pid}`

/** The place. None that lasts for a house that nobody would find again: on a port that is chosen anew, or as some client's child. */
export const placeOf = ({ data, port, postgres, stdio }: Options): Place => {
  if (postgres !== undefined) {
    const told =
      `Tasks are kept in PostgreSQL. Start others who work on them: npm run worker -- --postgres ${postgres}\n` +
      `Then stop who is at work, rudely if you like (this house: ${rude}), and another one goes on.`
    return { tasks: PostgresTasks.layer({ url: postgres }), told }
  }
  const file = data ?? (stdio || port === 0 ? ":memory:" : byPort(port))
  const tasks = SqliteTasks.layer({ filename: file })
  if (file === ":memory:") return { tasks, told: "Tasks are kept in memory, and are gone with this process." }
  mkdirSync(dirname(file), { recursive: true })
  const where = relative(process.cwd(), file)
  return { tasks, told: `Tasks are kept in ${where}. Kill the house meanwhile, ${rude}, and start it again.` }
}
