/** Files that are exchanged while they are in use, in all the ways in which that is done. */

import assert from 'node:assert/strict';
import { mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { watchFiles } from '../../../src/certificates/file-watcher.ts';
import { temporaryFolder } from '../../kit/folder.ts';

/** Two files that fit if they hold the same. */
function startWatch(t: TestContext) {
  const folder = temporaryFolder(t);
  const [cert, key] = [join(folder, 'cert'), join(folder, 'key')];
  const write = (inCert: string, inKey = inCert) => {
    writeFileSync(cert, inCert);
    writeFileSync(key, inKey);
  };
  write('one');
  const news: string[] = [];
  const watched = watchFiles(
    [cert, key],
    (read) => {
      if (!read(cert).equals(read(key))) throw new Error('they do not fit');
      return read(cert).toString();
    },
    {
      onChange: (made) => void news.push(`renewed ${made}`),
      onInvalid: (why) => void news.push(`kept: ${why}`),
    },
  );
  const look = async (times = 1) => {
    for (let time = 0; time < times; time += 1) await watched.poll();
    return watched.current();
  };
  return { folder, cert, key, write, news, look };
}

describe('watched files', () => {
  test('are taken over when two looks have found the same', async (t) => {
    const { write, look, news } = startWatch(t);
    assert.equal(await look(3), 'one');
    write('two');
    assert.equal(await look(), 'one');
    assert.equal(await look(), 'two');
    assert.equal(await look(3), 'two');
    assert.deepEqual(news, ['renewed two']);
  });

  test('are not judged while they are still being written', async (t) => {
    const { write, look, news } = startWatch(t);
    for (const part of ['t', 'tw', 'two']) {
      write(part);
      assert.equal(await look(), 'one');
    }
    assert.equal(await look(), 'two');
    assert.deepEqual(news, ['renewed two']);
  });

  test('keep what was, and say so once, until they fit', async (t) => {
    const { write, look, news } = startWatch(t);
    write('two', 'one');
    assert.equal(await look(5), 'one');
    write('three', 'one');
    assert.equal(await look(5), 'one');
    assert.deepEqual(news, ['kept: they do not fit']);
    write('three');
    assert.equal(await look(2), 'three');
    write('four', 'one');
    await look(5);
    assert.deepEqual(news, ['kept: they do not fit', 'renewed three', 'kept: they do not fit']);
  });

  test('count as mended if they are put back as they were', async (t) => {
    const { write, look, news } = startWatch(t);
    for (let round = 0; round < 2; round += 1) {
      write('two', 'one');
      await look(3);
      write('one');
      await look(3);
    }
    assert.deepEqual(news, ['kept: they do not fit', 'kept: they do not fit']);
  });

  test('may be missing for a while', async (t) => {
    const { cert, key, write, look, news } = startWatch(t);
    rmSync(key);
    assert.equal(await look(5), 'one');
    assert.deepEqual(news, [`kept: ${key} cannot be read (ENOENT)`]);
    rmSync(cert);
    await look(5);
    write('two');
    assert.equal(await look(2), 'two');
    assert.equal(news.length, 2);
  });

  test('may be renamed into place', async (t) => {
    const { cert, key, look } = startWatch(t);
    for (const file of [cert, key]) {
      writeFileSync(`${file}.next`, 'two');
      renameSync(`${file}.next`, file);
    }
    assert.equal(await look(2), 'two');
  });

  test('may lie behind a link that leads elsewhere now, as Kubernetes does it', async (t) => {
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
    const told = { onChange: () => {}, onInvalid: () => {} };
    const watched = watchFiles(files, (read) => files.map((file) => read(file).toString()).join(), told);
    publish('two');
    await watched.poll();
    await watched.poll();
    assert.equal(watched.current(), 'two,two');
  });

  test('are seen to change though size and time stay the same', async (t) => {
    const { cert, key, write, look } = startWatch(t);
    write('eno');
    for (const file of [cert, key]) utimesSync(file, 0, 0);
    assert.equal(await look(2), 'eno');
    write('neo');
    for (const file of [cert, key]) utimesSync(file, 0, 0);
    assert.equal(await look(2), 'neo');
  });

  test('must fit at the beginning', (t) => {
    const { folder } = startWatch(t);
    const none = { onChange: () => {}, onInvalid: () => {} };
    assert.throws(
      () => watchFiles([join(folder, 'nowhere')], () => 1, none),
      /nowhere cannot be read \(ENOENT\)/,
    );
    const refuse = () => {
      throw new Error('they do not fit');
    };
    assert.throws(() => watchFiles([], refuse, none), /they do not fit/);
  });
});
