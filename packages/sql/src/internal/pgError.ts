import * as SqlError from "effect/sql/SqlError"

/**
 * Converts an error of `pg` or of the server to an `SqlError` with a reason, by its SQLSTATE
 * (https://www.postgresql.org/docs/current/errcodes-appendix.html).
 */
export const pgError = (cause: unknown, operation: string): SqlError.SqlError =>
  new SqlError.SqlError({ reason: reason(cause, operation) })

const reason = (cause: unknown, operation: string): SqlError.SqlErrorReason => {
  const props = { cause, operation, message: `PostgreSQL: ${cause instanceof Error ? cause.message : String(cause)}` }
  const code = sqlState(cause)
  // An error without a state is not from the server: it is from the network, or from `pg` about a lost connection.
  if (code === undefined) {
    return isInvalidValue(cause) ? new SqlError.UnknownError(props) : new SqlError.ConnectionError(props)
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
    case "25P03": // the transaction was idle for too long, and the server closed its connection
    case "25P04": // the transaction took too long, and the server closed its connection
      return new SqlError.ConnectionError(props)
    case "55P03":
      return new SqlError.LockTimeoutError(props)
    case "57014":
      return new SqlError.StatementTimeoutError(props)
  }
  switch (code.slice(0, 2)) {
    case "08": // connection exception
    case "57": // operator intervention: shutting down, starting up, idle for too long
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

/** Whether the connection is lost or could not be opened. */
export const isConnectionError = ({ reason }: SqlError.SqlError): boolean => reason._tag === "ConnectionError"

/** Returns the SQLSTATE of an error of the server: five characters. */
export const sqlState = (cause: unknown): string | undefined =>
  cause instanceof Error && "code" in cause && typeof cause.code === "string" && /^[0-9A-Z]{5}$/.test(cause.code)
    ? cause.code
    : undefined

/** Whether `pg` could not write a value. It throws such an error before it sends anything. */
const isInvalidValue = (cause: unknown): boolean => cause instanceof TypeError || cause instanceof RangeError

const constraint = (cause: unknown): string =>
  cause instanceof Error && "constraint" in cause && typeof cause.constraint === "string" ? cause.constraint : "unknown"
