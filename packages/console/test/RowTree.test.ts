import { assert, describe, it } from "@effect/vitest"
import { RowTree, type TreeRow } from "@skein/console/RowTree"

const make = (...set: ReadonlyArray<TreeRow>) => {
  const tree = new RowTree<TreeRow>({ textOf: ({ label }) => label, makeMore: (row) => row })
  tree.receive({ at: 1, reset: true, set })
  return tree
}

const labels = (tree: RowTree<TreeRow>, filter = "") =>
  tree.visible({ filter, busyOnly: false }).map(({ level, row }) => `${"-".repeat(level)}${row.label}`)

const server = { id: "s", kind: "server", label: "server", state: "running" }
const row = (id: string, kind: string, more: Partial<TreeRow> = {}): TreeRow => ({
  id,
  parent: "s",
  kind,
  label: id,
  state: "running",
  ...more
})

describe("RowTree", () => {
  it("shows groups first, and the newest task first, however they have arrived", () => {
    const tree = make(
      server,
      row("session", "session"),
      row("group", "group"),
      row("old", "task", { parent: "group", since: 1 }),
      row("new", "task", { parent: "group", since: 2 })
    )
    assert.deepStrictEqual(labels(tree), ["server", "-group", "--new", "--old", "-session"])
  })

  it("collapses tasks that have failed, until they are expanded", () => {
    const tree = make(server, row("task", "task", { state: "failed" }), row("step", "step", { parent: "task" }))
    assert.deepStrictEqual(labels(tree), ["server", "-task"])
    tree.setExpanded("task", true)
    assert.deepStrictEqual(labels(tree), ["server", "-task", "--step"])
    tree.collapseAll()
    assert.deepStrictEqual(labels(tree), ["server", "-task"])
  })

  it("shows the number of children that were not sent, and adds those that were asked for", () => {
    const tree = make({ ...server, more: { total: 3, after: "a" } }, row("a", "task"))
    const [, , more] = tree.visible({ filter: "", busyOnly: false })
    assert.deepInclude(more!.more, { after: "a" })
    assert.match(more!.row.label, /^2 more: /)
    tree.addMore("s", { rows: [row("b", "task"), row("c", "task")] })
    assert.deepStrictEqual(labels(tree), ["server", "-a", "-b", "-c"])
    assert.deepStrictEqual(["a", "b"].map((id) => tree.isExtra(id)), [false, true])
  })

  it("moves a row to another parent, and removes the rows that were asked for with theirs", () => {
    const tree = make({ ...server, more: { total: 1, after: "x" } }, row("a", "group"), row("b", "request"))
    tree.addMore("a", { rows: [row("c", "task", { parent: "a" })] })
    tree.receive({ at: 2, set: [row("b", "request", { parent: "a" })] })
    assert.deepStrictEqual(labels(tree, "b"), ["server", "-a", "--b"])
    tree.receive({ at: 3, remove: ["a"] })
    assert.isUndefined(tree.get("c"))
  })
})
