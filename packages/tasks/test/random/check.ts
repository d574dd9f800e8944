/** Compares the result of a task with the expected one. */
import { textOf } from "../engine/kit.ts"
import type { Past } from "./drive.ts"
import type { Part, Program, Step } from "./generate.ts"
import { model } from "./model.ts"
import type { World } from "./world.ts"

/** All steps, questions and races of a program, by their names. */
const named = (program: Program) => {
  const steps = new Map<string, Step>()
  const asks = new Set<string>()
  const races = new Set<string>()
  const sections = new Map<string, ReadonlyArray<Part>>()
  const walk = (name: string, parts: ReadonlyArray<Part>): void => {
    for (const [index, part] of parts.entries()) {
      const own = `${name}.${index}`
      if (part._tag === "Step") steps.set(own, part)
      if (part._tag === "Race") races.add(own)
      if (part._tag === "Race" || part._tag === "Ask") asks.add(own)
      if (part._tag === "Section") sections.set(own, part.parts)
      if (part._tag === "Catch" || part._tag === "Section") walk(own, part.parts)
      if (part._tag === "All") part.parts.forEach((parts, index) => walk(`${own}/${index}`, parts))
    }
  }
  walk("p", program.parts)
  return { steps, asks, races, sections }
}

const sorted = (names: Iterable<string>): string => [...names].toSorted().join(" ")

/** The differences. */
export const check = (program: Program, world: World, past: Past): ReadonlyArray<string> => {
  const { acts, registered, seen, undone } = world
  const problems = [...world.problems]
  const expect = (right: boolean, problem: () => string): void => void (right || problems.push(problem()))
  const { answers, asked, cancelled, cancelledFirst, expired, kills, ledger, state } = past
  const { asks, races, sections, steps } = named(program)
  const rude = cancelled || expired
  const good = (name: string): boolean => (acts.get(name)?.good ?? 0) > 0

  const owners = new Map<string, string>()
  for (const [name, { keys }] of acts) {
    expect(keys.size === 1, () => `${name} has ${keys.size} keys`)
    for (const key of keys) {
      expect((owners.get(key) ?? name) === name, () => `${name} has the key of ${owners.get(key)}`)
      owners.set(key, name)
    }
  }
  const commits = (name: string): number => ledger.filter((row) => row.name === name).length
  for (const { key, name } of ledger) {
    expect(commits(name) === 1, () => `${name} is committed ${commits(name)} times`)
    expect(acts.get(name)?.keys.has(key) === true, () => `${name} is committed with a key that it does not have`)
  }

  for (const [name, text] of answers) {
    const gave = seen.get(name)
    expect(
      gave === undefined || gave === text || races.has(name),
      () => `${name} gave ${gave}, and was answered ${text}`
    )
  }
  for (const [name, gave] of seen) {
    if (!asks.has(name)) continue
    const answered = answers.get(name)
    expect(
      !gave.startsWith("answer") && gave !== "decline" || gave === answered,
      () => `${name} gave ${gave}, and was answered ${answered}`
    )
  }

  if (!rude) expect(world.reasons.every((reason) => reason === "failed"), () => `It is undone as ${world.reasons}`)
  if (cancelledFirst) {
    expect(
      world.reasons.every((reason) => reason === "cancelled"),
      () => `It was cancelled, and is undone as ${world.reasons}`
    )
  }

  // Everything that was done and has a compensation is undone; and nothing else.
  const expected = model(program, (name) => seen.get(name))
  // A branch that fails cuts the others off where they are.
  const beside = (name: string) => expected.torn.some((torn) => name.startsWith(`${torn}/`))
  // It may have ended in the last second before its expiry.
  const undoes = cancelled || (expired && undone.length > 0) || state.status === "failed" || state.isError
  for (const [name, { ends, transactional, undo }] of steps) {
    const did = transactional ? commits(name) > 0 : good(name)
    const undid = undone.includes(name)
    const whole = !undid || (transactional ? commits(`undo ${name}`) === 1 : good(`undo ${name}`))
    expect(whole, () => `${name} is not wholly undone`)
    if (undo === "not" || !undoes) expect(!undid, () => `${name} is undone`)
    else if (registered.has(name)) expect(undid, () => `${name} is not undone`)
    else if (undo === "after") {
      expect(did || !undid, () => `${name} is undone, and was not done`)
      // A step that was cut off by a kill may have acted without a record; or another branch fails, and does not wait
      // for it.
      const known = kills === 0 || transactional
      if (did && known && !beside(name) && ends !== "dies") expect(undid, () => `${name} is done, and not undone`)
    }
    if (kills === 0 && undid) {
      expect(acts.get(`undo ${name}`)!.good === 1, () => `${name} is undone ${acts.get(`undo ${name}`)!.good} times`)
    }
  }

  // A section that was begun has come to its end, whatever has happened to the task. Another branch may interrupt it.
  for (const [section, parts] of expired ? [] : sections) {
    const run: Array<string> = []
    for (const [index, part] of parts.entries()) {
      if (part._tag !== "Step") continue
      run.push(`${section}.${index}`)
      if (part.ends === "never" || part.ends === "dies") break
    }
    if (beside(section) || !run.some((name) => (acts.get(name)?.begun ?? 0) > 0)) continue
    for (const name of run) {
      expect((acts.get(name)?.ended ?? 0) > 0, () => `${name} of the section ${section} has not ended`)
    }
  }

  for (const [name, { ended }] of acts) {
    const step = steps.get(name)
    const most = step === undefined || step.ends === "well" || step.ends === "dies" ? 1 : step.tries + 1
    if (kills === 0) expect(ended <= most, () => `${name} has ended ${ended} times`)
  }
  if (rude) {
    expect(expired || state.status === "cancelled", () => `It is ${state.status}`)
    return problems
  }
  if (expected.torn.length > 0) return problems

  // Without an incident the result is that of the model.
  const end = state.status === "failed" ? "defect" : state.isError ? "error" : "value"
  expect(end === expected.end, () => `It ends with ${end} (${state.status}) instead of ${expected.end}`)
  if (end !== "defect") expect(textOf(state) === expected.text, () => `It says ${textOf(state)}, not ${expected.text}`)
  if (asked !== undefined) {
    expect(sorted(asked) === sorted(expected.asked), () => `It has asked ${asked}, not ${expected.asked}`)
  }
  for (const [name, { good, times, transactional }] of expected.steps) {
    const { begun = 0, ended = 0 } = acts.get(name) ?? {}
    expect(kills > 0 ? begun > 0 : ended === times, () => `${name} has ended ${ended} times instead of ${times}`)
    if (transactional) expect(commits(name) === (good ? 1 : 0), () => `${name} is committed ${commits(name)} times`)
  }
  for (const name of acts.keys()) {
    expect(name.startsWith("undo ") || expected.steps.has(name), () => `${name} was run`)
  }
  const undos = end === "value" ? [] : expected.undos.toReversed()
  expect(sorted(undone) === sorted(undos), () => `It has undone ${undone}, not ${undos}`)
  if (expected.sequential) {
    expect(undone.join() === undos.join(), () => `It has undone ${undone} in this order, not ${undos}`)
    if (end === "value") {
      expect(
        state.statusMessage === expected.statusMessage,
        () => `Its status message is ${state.statusMessage}, not ${expected.statusMessage}`
      )
    }
  }
  if (end === "value") {
    const { progress = 0 } = state.progress ?? {}
    expect(progress === expected.reported, () => `It has come to ${progress}, not ${expected.reported}`)
  }
  return problems
}
