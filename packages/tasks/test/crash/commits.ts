/**
 * Lets this process die at a commit of its database: what is durable changes there, and nowhere else.
 */
import { writeSync } from "node:fs"
import { DatabaseSync, type StatementSync } from "node:sqlite"

/** When it dies. */
export interface Death {
  /** Right before a commit, or right after it. */
  readonly side: "before" | "after"
  /** At which one: by its number, from 1 on, or the first one that has a statement like this in it. */
  readonly commit: number | RegExp
}

/** How many commits there were. */
export let commits = 0

const writes = /^\s*(?:INSERT|UPDATE|DELETE|WITH|CREATE)\b/i

/** Commits are counted from now on, and one of them is the last thing that this process does, or does not. */
export const dieAt = (death: Death | undefined): void => {
  let statements: Array<string> = []

  const die = (side: Death["side"]): void => {
    if (death?.side !== side) return
    const { commit } = death
    if (typeof commit === "number" ? commit !== commits : !statements.some((sql) => commit.test(sql))) return
    const words = statements.map((sql) => sql.replaceAll(/\s+/g, " ").trim().slice(0, 60))
    writeSync(2, `${side} commit ${commits}: ${words.join("; ")}\n`)
    process.kill(process.pid, "SIGKILL")
  }

  const { prepare } = DatabaseSync.prototype
  DatabaseSync.prototype.prepare = function(this: DatabaseSync, sql: string): StatementSync {
    const statement = prepare.call(this, sql)
    const around = <A>(run: () => A): A => {
      const within = this.isTransaction
      const commit = within ? /^\s*COMMIT\b/i.test(sql) : writes.test(sql)
      if (within && writes.test(sql)) statements.push(sql)
      if (!commit) return run()
      if (!within) statements = [sql]
      commits++
      die("before")
      const result = run()
      die("after")
      statements = []
      return result
    }
    const { all, run } = statement
    statement.all = (...parameters: ReadonlyArray<never>) => around(() => all.apply(statement, parameters as never))
    statement.run = (...parameters: ReadonlyArray<never>) => around(() => run.apply(statement, parameters as never))
    return statement
  }
}
