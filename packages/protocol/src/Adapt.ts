/** A value that a revision cannot carry without changing what it means. Nothing should be sent. */
export interface Unrepresentable {
  readonly _tag: "Unrepresentable"
  /** One line for people: what cannot be said, and since when it can. */
  readonly message: string
}
