import * as SqlError from "effect/sql/SqlError"

/** What `pg` or the server said, as an `SqlError` with a reason (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
export const pgError = (cause: unknown, operation: string): SqlError.SqlError =>
  new SqlError.SqlError({ reason: reason(cause, operation) })

const reason = (cause: unknown, operation: string): SqlError.SqlErrorReason => {
  const props = { cause, operation, message: `PostgreSQL: ${cause instanceof Error ? cause.message : String(cause)}` }
  const code = sqlState(cause)
  // Without a state it did not come from the server: the network, or `pg` about a connection that is gone.
  if (code === undefined) {
    return isOfTheQuery(cause) ? new SqlError.UnknownError(props) : new SqlError.ConnectionError(props)
  }
  switch (code) {
    case "23505":
      return new SqlError.UniqueViolation({ ...props, constraint: constraint(cause) })
    case "40001":
      return new SqlError.SerializationError(props)
    case "40P01":
      return new SqlError.DeadlockError(props)
    case "42501":
      return new SqlError.AuthorizationError(props)
    case "53300": // too many connections
    case "25P03": // the transaction was idle for too long, and its connection was closed
    case "25P04": // the transaction took too long, and its connection was closed
      return new SqlError.ConnectionError(props)
    case "55P03":
      return new SqlError.LockTimeoutError(props)
    case "57014":
      return new SqlError.StatementTimeoutError(props)
  }
  switch (code.slice(0, 2)) {
    case "08": // the connection
    case "57": // the operator: shutting down, starting up, idle for too long
      return new SqlError.ConnectionError(props)
    case "23":
      return new SqlError.ConstraintError(props)
    case "28":
      return new SqlError.AuthenticationError(props)
    case "42":
      return new SqlError.SqlSyntaxError(props)
    default:
      return new SqlError.UnknownError(props)
  }
}

/** Whether the connection is gone, or was never there. */
export const isOfConnection = ({ reason }: SqlError.SqlError): boolean => reason._tag === "ConnectionError"

/** The five characters with which the server says what went wrong. */
export const sqlState = (cause: unknown): string | undefined =>
  cause instanceof Error && "code" in cause && typeof cause.code === "string" && /^[0-9A-Z]{5}$/.test(cause.code)
    ? cause.code
    : undefined

/** A value that cannot be written, which `pg` throws before it sends anything. */
const isOfTheQuery = (cause: unknown): boolean => cause instanceof TypeError || cause instanceof RangeError

const constraint = (cause: unknown): string =>
  cause instanceof Error && "constraint" in cause && typeof cause.constraint === "string" ? cause.constraint : "unknown"
