/**
 * The handle of a task.
 */
import type { Revision } from "@skein/protocol/Revision"

/**
 * Identifies a task: a JSON value that can be stored and passed to `resumeTask`. Protect it: it may be sufficient to
 * access the task.
 */
export interface Handle {
  readonly taskId: string
  /** The tool that was called. The result is validated by its schema. */
  readonly tool?: string | undefined
  /**
   * The name of the server, as it sent it. A server with another name is not asked for the task: its id may be all that
   * is needed to access it.
   */
  readonly server?: string | undefined
  /**
   * The revision in which it was started. The server decides whether the task is also available in the other revision
   * that has tasks.
   */
  readonly revision?: Revision | undefined
}
