import * as SqlError from "effect/sql/SqlError"

// Codes of SQLite (https://sqlite.org/rescode.html) that `node:sqlite` reports as `errcode`.
const generic = 1
const busy = 5
const locked = 6
const unique = 2067
const primaryKey = 1555
const rowId = 2579

/** Returns the result code of SQLite in an error of `node:sqlite`, if it has one. */
const resultCode = (cause: unknown): number | undefined =>
  cause instanceof Error && "errcode" in cause && typeof cause.errcode === "number" ? cause.errcode : undefined

/** Whether another connection holds a lock that the statement needs. */
export const isBusy = (cause: unknown): boolean => {
  const code = resultCode(cause)
  return code !== undefined && ((code & 0xff) === busy || (code & 0xff) === locked)
}

const lockAdvice =
  "another process or client has held its lock for longer than lockTimeout. Try again, or end the transaction that holds it"

/** Converts an error of `node:sqlite` to an `SqlError` with a reason. */
export const sqliteError = (cause: unknown, operation: string): SqlError.SqlError =>
  new SqlError.SqlError({ reason: reason(cause, operation) })

const reason = (cause: unknown, operation: string): SqlError.SqlErrorReason => {
  const message = `SQLite: ${cause instanceof Error ? cause.message : String(cause)}${
    isBusy(cause) ? `: ${lockAdvice}` : ""
  }`
  const code = resultCode(cause)
  if (code === undefined) {
    // An error of Node itself: a value that cannot be bound, or a closed database.
    return cause instanceof Error && "code" in cause && cause.code === "ERR_INVALID_STATE"
      ? new SqlError.ConnectionError({ cause, message, operation })
      : new SqlError.UnknownError({ cause, message, operation })
  }
  // While a statement is compiled, the generic code means that its syntax is wrong.
  if (code === generic && operation === "prepare") return new SqlError.SqlSyntaxError({ cause, message, operation })
  // A duplicate primary key is a unique violation, as in PostgreSQL. Effect's classification reads `errno`, which
  // `node:sqlite` does not set.
  const errno = code === primaryKey || code === rowId ? unique : code
  const classified = Object.assign(cause as Error, { errno })
  return SqlError.classifySqliteError(classified, { message, operation })
}
