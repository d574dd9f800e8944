/**
 * Tasks whose replays are hard: races that end at the same time, and steps that block the event loop for longer than
 * the lease of their worker.
 */
import { Caller, endOf } from "./caller.ts"
import type { Fleet } from "./fleet.ts"

/** Tasks that race. Each run of a task must see the same winner. */
export const ties = async (fleet: Fleet, jitter: number, count: number): Promise<string> => {
  const what = jitter === 0 ? "a race at equal times" : `a race with ${jitter} ms of jitter`
  const caller = await Caller.open(fleet.serverUrl)
  const tasks = await Promise.all(Array.from({ length: count }, () => caller.start("races", { jitter })))
  const ends = await Promise.all(tasks.map(endOf))
  let left = 0
  for (const [index, task] of tasks.entries()) {
    const own = fleet.outside.done.filter((done) => done.task === task.id)
    const winners = own.filter(({ step }) => step === "winner").map(({ key }) => key.slice(task.id.length + 1))
    if (ends[index] === "left") left++
    fleet.same(`${what}: the winners of ${task.id}, and its end`, new Set([...winners, ends[index]]).size, 1)
    if (winners.length < 2) fleet.problems.push(`${what}: ${task.id} was not replayed`)
    fleet.same(`${what}: the effects of its last step`, (await fleet.traces(task.id))["last"], "one effect")
  }
  await caller.close()
  return `${left} of ${count} won by the first`
}

/** How often a step may run that blocks its worker until another worker has taken it over. */
const mostExecutions = 4

/** Steps block the event loop for longer than the lease. They end, and run a bounded number of times. */
export const blocked = async (fleet: Fleet, milliseconds: number): Promise<string> => {
  const what = `steps that block the event loop for ${milliseconds} ms`
  const caller = await Caller.open(fleet.serverUrl)
  const tasks = await Promise.all([1, 2].map(() => caller.start("blocks", { milliseconds })))
  const counts: Array<number> = []
  for (const task of tasks) {
    fleet.same(`${what}: its end`, await endOf(task), "Unblocked")
    for (const step of ["first", "second"]) {
      const own = fleet.outside.done.filter((done) => done.task === task.id && done.step === step)
      counts.push(own.length)
      fleet.same(`${what}: the keys of ${step}`, new Set(own.map(({ key }) => key)).size, 1)
    }
  }
  if (Math.max(...counts) > mostExecutions) {
    fleet.problems.push(`${what}: they were executed ${counts.join(", ")} times`)
  }
  await caller.close()
  return `executed ${counts.join(", ")} times`
}
