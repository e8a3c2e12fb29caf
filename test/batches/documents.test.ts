import { defineBatch } from '../kit/batch.ts';

defineBatch('test/{deploy,docs}/**/*.test.ts');
