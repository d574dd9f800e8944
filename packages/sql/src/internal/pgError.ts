import * as SqlError from "effect/sql/SqlError"

/**
 * Converts an error of `pg` or of the server to an `SqlError` with a reason, by its SQLSTATE
 * (https://www.postgresql.org/docs/current/errcodes-appendix.html).
 */
export const pgError = (cause: unknown, operation: string): SqlError.SqlError =>
  new SqlError.SqlError({ reason: reason(cause, operation) })

type Reason = new(
  props: { readonly cause: unknown; readonly operation: string; readonly message: string }
) => SqlError.SqlErrorReason

/** The reasons by SQLSTATE, and by its first two characters, which are the class of the error. */
const reasons: Readonly<Record<string, Reason | undefined>> = {
  "40001": SqlError.SerializationError,
  "40P01": SqlError.DeadlockError,
  "42501": SqlError.AuthorizationError,
  "53300": SqlError.ConnectionError, // too many connections
  "25P03": SqlError.ConnectionError, // the transaction was idle for too long, and the server closed its connection
  "25P04": SqlError.ConnectionError, // the transaction took too long, and the server closed its connection
  "55P03": SqlError.LockTimeoutError,
  "57014": SqlError.StatementTimeoutError,
  "08": SqlError.ConnectionError, // connection exception
  "57": SqlError.ConnectionError, // operator intervention: shutting down, starting up, idle for too long
  "23": SqlError.ConstraintError,
  "28": SqlError.AuthenticationError,
  "42": SqlError.SqlSyntaxError
}

const reason = (cause: unknown, operation: string): SqlError.SqlErrorReason => {
  const props = { cause, operation, message: `PostgreSQL: ${cause instanceof Error ? cause.message : String(cause)}` }
  const code = sqlState(cause)
  // An error without a state is not from the server: it is from the network, or from `pg` about a lost connection.
  if (code === undefined) {
    return isInvalidValue(cause) ? new SqlError.UnknownError(props) : new SqlError.ConnectionError(props)
  }
  if (code === "23505") return new SqlError.UniqueViolation({ ...props, constraint: constraint(cause) })
  const Reason = reasons[code] ?? reasons[code.slice(0, 2)] ?? SqlError.UnknownError
  return new Reason(props)
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
