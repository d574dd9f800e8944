/**
 * What names a task.
 */
import type { Revision } from "@skein/protocol/Revision"

/**
 * What a task is found again by: a JSON value, to be kept and given to `resumeTask`. Who has it may have all that the
 * task gives.
 */
export interface Handle {
  readonly taskId: string
  /** The tool that was called, by which the result is checked. */
  readonly tool?: string | undefined
  /**
   * What the server called itself. A server of another name is not asked for the task: the id may be all that it takes
   * to get it.
   */
  readonly server?: string | undefined
  /** The revision that it was started in. It may be found again in the other one that has tasks: the server decides. */
  readonly revision?: Revision | undefined
}
