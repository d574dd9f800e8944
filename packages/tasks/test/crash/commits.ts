/**
 * Kills this process at a commit of its database: durable state changes at commits only.
 */
import { writeSync } from "node:fs"
import { DatabaseSync, type StatementSync } from "node:sqlite"

/** When the process dies. */
export interface Death {
  /** Right before a commit, or right after it. */
  readonly side: "before" | "after"
  /** At which commit: its number, from 1, or the first one with a matching statement. */
  readonly commit: number | RegExp
}

/** The number of commits. */
export let commits = 0

const writes = /^\s*(?:INSERT|UPDATE|DELETE|WITH|CREATE)\b/i

/** Counts commits from now on; the chosen one is the last that this process makes, or does not make. */
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
