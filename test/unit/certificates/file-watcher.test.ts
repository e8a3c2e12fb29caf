import assert from 'node:assert/strict';
import { mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { watchFiles } from '../../../src/certificates/file-watcher.ts';
import { temporaryFolder } from '../../kit/folder.ts';

/** Two files that are valid if their contents are equal; the value is their content. */
function startWatcher(t: TestContext) {
  const folder = temporaryFolder(t);
  const [cert, key] = [join(folder, 'cert'), join(folder, 'key')];
  const write = (inCert: string, inKey = inCert) => {
    writeFileSync(cert, inCert);
    writeFileSync(key, inKey);
  };
  write('one');
  const events: string[] = [];
  const watcher = watchFiles(
    [cert, key],
    (read) => {
      if (!read(cert).equals(read(key))) throw new Error('they differ');
      return read(cert).toString();
    },
    {
      onChange: (value) => void events.push(`changed: ${value}`),
      onInvalid: (why) => void events.push(`invalid: ${why}`),
    },
  );
  const poll = async (times = 1) => {
    for (let time = 0; time < times; time += 1) await watcher.poll();
    return watcher.current();
  };
  return { folder, cert, key, write, events, poll };
}

const noEvents = { onChange: () => {}, onInvalid: () => {} };

describe('file watcher', () => {
  test('uses new contents when two polls have found them', async (t) => {
    const { write, poll, events } = startWatcher(t);
    assert.equal(await poll(3), 'one');
    write('two');
    assert.equal(await poll(), 'one');
    assert.equal(await poll(), 'two');
    assert.equal(await poll(3), 'two');
    assert.deepEqual(events, ['changed: two']);
  });

  test('ignores a file while it is being written', async (t) => {
    const { write, poll, events } = startWatcher(t);
    for (const part of ['t', 'tw', 'two']) {
      write(part);
      assert.equal(await poll(), 'one');
    }
    assert.equal(await poll(), 'two');
    assert.deepEqual(events, ['changed: two']);
  });

  test('keeps the old value while the files are invalid, and reports them once', async (t) => {
    const { write, poll, events } = startWatcher(t);
    write('two', 'one');
    assert.equal(await poll(5), 'one');
    write('three', 'one');
    assert.equal(await poll(5), 'one');
    assert.deepEqual(events, ['invalid: they differ']);
    write('three');
    assert.equal(await poll(2), 'three');
    write('four', 'one');
    await poll(5);
    assert.deepEqual(events, ['invalid: they differ', 'changed: three', 'invalid: they differ']);
  });

  test('reports invalid files again after the old contents were restored', async (t) => {
    const { write, poll, events } = startWatcher(t);
    for (let round = 0; round < 2; round += 1) {
      write('two', 'one');
      await poll(3);
      write('one');
      await poll(3);
    }
    assert.deepEqual(events, ['invalid: they differ', 'invalid: they differ']);
  });

  test('keeps the old value while a file is missing', async (t) => {
    const { cert, key, write, poll, events } = startWatcher(t);
    rmSync(key);
    assert.equal(await poll(5), 'one');
    assert.deepEqual(events, [`invalid: ${key} cannot be read (ENOENT)`]);
    rmSync(cert);
    await poll(5);
    write('two');
    assert.equal(await poll(2), 'two');
    assert.equal(events.length, 2);
  });

  test('detects files that are renamed into place', async (t) => {
    const { cert, key, poll } = startWatcher(t);
    for (const file of [cert, key]) {
      writeFileSync(`${file}.next`, 'two');
      renameSync(`${file}.next`, file);
    }
    assert.equal(await poll(2), 'two');
  });

  test('detects a changed symbolic link in the path, as Kubernetes updates secrets', async (t) => {
    const folder = temporaryFolder(t);
    const publish = (version: string) => {
      mkdirSync(join(folder, version));
      for (const name of ['cert', 'key']) writeFileSync(join(folder, version, name), version);
      symlinkSync(version, join(folder, '..data_tmp'));
      renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
    };
    publish('one');
    for (const name of ['cert', 'key']) symlinkSync(`..data/${name}`, join(folder, name));
    const files = [join(folder, 'cert'), join(folder, 'key')];
    const watcher = watchFiles(files, (read) => files.map((file) => read(file).toString()).join(), noEvents);
    publish('two');
    await watcher.poll();
    await watcher.poll();
    assert.equal(watcher.current(), 'two,two');
  });

  test('detects new contents of the same size and modification time', async (t) => {
    const { cert, key, write, poll } = startWatcher(t);
    write('eno');
    for (const file of [cert, key]) utimesSync(file, 0, 0);
    assert.equal(await poll(2), 'eno');
    write('neo');
    for (const file of [cert, key]) utimesSync(file, 0, 0);
    assert.equal(await poll(2), 'neo');
  });

  test('throws at the start if a file is missing or the files are invalid', (t) => {
    const { folder } = startWatcher(t);
    assert.throws(
      () => watchFiles([join(folder, 'nowhere')], () => 1, noEvents),
      /nowhere cannot be read \(ENOENT\)/,
    );
    const refuse = () => {
      throw new Error('they differ');
    };
    assert.throws(() => watchFiles([], refuse, noEvents), /they differ/);
  });
});
