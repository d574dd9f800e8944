import * as SqlError from "effect/sql/SqlError"

/**
 * Makes an `SqlError` with a reason, by the SQLSTATE of its cause
 * (https://www.postgresql.org/docs/current/errcodes-appendix.html). An error without a state is not from the server; its
 * reason is `Reason`.
 */
export const pgError = (cause: unknown, operation: string, Reason: Reason = SqlError.UnknownError): SqlError.SqlError =>
  new SqlError.SqlError({ reason: reason(cause, operation, Reason) })

/** Converts an error of `@effect/sql-pg`, which has fewer reasons, and the server's text only in its cause. */
export const toPgError = ({ reason }: SqlError.SqlError): SqlError.SqlError =>
  pgError(reason.cause, reason.operation ?? "execute", ownReasons[reason._tag])

type Reason = new(
  props: { readonly cause: unknown; readonly operation: string; readonly message: string }
) => SqlError.SqlErrorReason

/** The reasons of `@effect/sql-pg` for errors that are not from the server, other than `UnknownError`. */
const ownReasons: Readonly<Record<string, Reason | undefined>> = {
  AuthenticationError: SqlError.AuthenticationError,
  ConnectionError: SqlError.ConnectionError
}

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

const reason = (cause: unknown, operation: string, Own: Reason): SqlError.SqlErrorReason => {
  const props = { cause, operation, message: `PostgreSQL: ${cause instanceof Error ? cause.message : String(cause)}` }
  const code = sqlState(cause)
  if (code === undefined) return new Own(props)
  if (code === "23505") return new SqlError.UniqueViolation({ ...props, constraint: constraint(cause) })
  const Reason = reasons[code] ?? reasons[code.slice(0, 2)] ?? SqlError.UnknownError
  return new Reason(props)
}

/** Whether the connection is lost or could not be opened. */
export const isConnectionError = ({ reason }: SqlError.SqlError): boolean => reason._tag === "ConnectionError"

/** Returns the SQLSTATE of an error of the server: five characters. Codes of the network, as `EPIPE`, are not states. */
const sqlState = (cause: unknown): string | undefined =>
  cause instanceof Error && "code" in cause && typeof cause.code === "string" &&
    /^[0-9FHPX][0-9A-Z]{4}$/.test(cause.code)
    ? cause.code
    : undefined

const constraint = (cause: unknown): string =>
  cause instanceof Error && "constraint" in cause && typeof cause.constraint === "string" ? cause.constraint : "unknown"
