/**
 * The questions of ready apps as their pages receive them: a member of `_meta` of the result. The pages in
 * `packages/apps/page` use the types.
 */
import type { PageField } from "./pageField.ts"

/** The key in `_meta` of the result. */
export const questionKey = "io.github.skein-mcp/question"

/** The members of every question. */
export interface PageQuestion {
  readonly title: string
  readonly details?: string | undefined
  /** The name of the tool that takes the answer. */
  readonly tool: string
  /** Proves that the answer is that of the page. */
  readonly token: string
}

/** A question of `Approval`, with the labels of its buttons. */
export interface PageApproval extends PageQuestion {
  readonly approve: string
  readonly decline: string
}

/** A question of `Choice`. */
export interface PageChoice extends PageQuestion {
  readonly options: ReadonlyArray<{
    readonly value: string
    readonly label?: string | undefined
    readonly description?: string | undefined
  }>
  readonly initial?: string | undefined
  readonly choose?: string | undefined
}

/** A question of `Upload`, with the bounds that the page checks before it sends. */
export interface PageUpload extends PageQuestion {
  readonly upload: string
  readonly accept: ReadonlyArray<string>
  readonly maxFiles: number
  readonly maxFileBytes: number
  readonly maxTotalBytes: number
  readonly maxPartBytes: number
}

/** A question of `Form`. */
export interface PageForm extends PageQuestion {
  readonly submit: string
  readonly fields: ReadonlyArray<PageField>
}

/** The key in `_meta` of a result for the tree of components that the page draws. */
export const treeKey = "io.github.skein-mcp/ui"

/** The key in `_meta` of the result for values that do not match: the problem of each field, by its name. */
export const problemsKey = "io.github.skein-mcp/problems"
